#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/text/chat_template.h"

namespace fathom::text {
namespace {

void check_family_fits(const Tokenizer& tokenizer, PromptStyle style, const std::optional<ChatTemplate>& family) {
  if (style == PromptStyle::kBase) return;
  if (!family) {
    throw ConfigError(fmt::format(
        "prompt.style = {} needs a chat template, and the model names none that is known; set prompt.template to "
        "one of {}, or prompt.style = base",
        to_string(style), fmt::join(chat_template_names(), ", ")));
  }
  if (tokenizer.closed_vocabulary()) {
    throw ConfigError(fmt::format(
        "prompt.style = {} does not go with a closed vocabulary, which has no words for a chat template; set "
        "prompt.style = base",
        to_string(style)));
  }
  if (!family->spells_bos) return;
  const std::string opening = family->begin.empty() ? family->user_open : family->begin;
  const TokenIds ids = tokenizer.encode(opening);
  if (ids.empty() || ids.front() != tokenizer.bos()) {
    throw ConfigError(
        fmt::format("chat template '{}' begins with '{}', which this model's tokenizer does not read as its BOS; set "
                    "prompt.template to the model's own family",
                    family->name, opening));
  }
}

// Exactly one BOS where the model wants one. A text that spells it out has it already.
bool put_bos_in_front(const Tokenizer& tokenizer, TokenIds& ids) {
  if (!tokenizer.adds_bos()) return false;
  const TokenId bos = *tokenizer.bos();
  const bool spelled = !ids.empty() && ids.front() == bos;
  if (!spelled) ids.insert(ids.begin(), bos);
  FATHOM_CHECK(ids.front() == bos && (ids.size() < 2 || ids[1] != bos), "a prompt begins with exactly one BOS");
  return !spelled;
}

// Sizes in front of the pieces: no piece can imitate the end of another.
std::string family_hash(const ChatTemplate& family) {
  std::string canonical = fmt::format("spells_bos={}\n", family.spells_bos ? 1 : 0);
  for (const std::string* piece : {&family.begin, &family.system_open, &family.system_preamble, &family.system_close,
                                   &family.user_open, &family.user_open_after_system, &family.user_close,
                                   &family.assistant_open, &family.default_system, &family.end_of_turn}) {
    canonical += fmt::format("{}:{}\n", piece->size(), *piece);
  }
  return hash_hex(canonical);
}

}  // namespace

PromptAssembler::PromptAssembler(const Tokenizer& tokenizer, PromptStyle style, std::optional<ChatTemplate> family)
    : tokenizer_(tokenizer), style_(style), family_(std::move(family)) {
  FATHOM_CHECK(!tokenizer.adds_bos() || tokenizer.bos().has_value(), "a tokenizer that adds BOS has none");
  check_family_fits(tokenizer, style, family_);
}

PromptAssembler::Assembled PromptAssembler::assemble(std::string_view system, std::string_view task_text,
                                                     std::string_view answer_prefix) const {
  Assembled out;
  if (style_ == PromptStyle::kBase) {
    out.task_offset = 0;
    out.text.append(task_text).append(answer_prefix);
  } else {
    // Rendered around an empty user turn, so that nothing but the family's own pieces touches the task text.
    const std::string_view system_text = system.empty() ? std::string_view(family_->default_system) : system;
    const bool after_system = !system_text.empty() || !family_->system_preamble.empty();
    out.text = family_->begin;
    if (after_system) {
      out.text.append(family_->system_open)
          .append(family_->system_preamble)
          .append(system_text)
          .append(family_->system_close);
    }
    out.text += after_system ? family_->user_open_after_system : family_->user_open;
    out.task_offset = out.text.size();
    out.text.append(task_text).append(family_->user_close).append(family_->assistant_open);
    if (style_ == PromptStyle::kChat) out.text += answer_prefix;
  }
  out.ids = tokenizer_.encode(out.text);
  out.bos_added = put_bos_in_front(tokenizer_, out.ids);
  return out;
}

TokenIds PromptAssembler::encode_whole(std::string_view text) const {
  TokenIds ids = tokenizer_.encode(text);
  put_bos_in_front(tokenizer_, ids);
  return ids;
}

std::vector<TokenId> PromptAssembler::stop_ids() const {
  std::vector<TokenId> stops;
  if (tokenizer_.eos()) stops.push_back(*tokenizer_.eos());
  if (family_ && !family_->end_of_turn.empty() && !tokenizer_.closed_vocabulary()) {
    const TokenIds ids = tokenizer_.encode(family_->end_of_turn);
    // Spelled with several tokens it is no special token here, and its first one would stop ordinary text.
    if (ids.size() == 1 && (stops.empty() || stops.front() != ids.front())) stops.push_back(ids.front());
  }
  return stops;
}

std::string PromptAssembler::fingerprint() const {
  std::string canonical = fmt::format("style={}", to_string(style_));
  if (style_ != PromptStyle::kBase) canonical += fmt::format(";template={}:{}", family_->name, family_hash(*family_));
  return canonical;
}

}  // namespace fathom::text
