#include "harness/task/prompt_build.h"

#include <algorithm>
#include <string_view>

#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::task {
namespace {

constexpr std::string_view kContextSlot = "{context}";

/// Tokens of `answer` behind `tail`: those after the longest common prefix with the tokens of `tail` alone.
std::int64_t count_answer_tokens(const text::Tokenizer& tokenizer, const std::string& tail, const std::string& answer) {
  const TokenIds alone = tokenizer.encode(tail);
  const TokenIds together = tokenizer.encode(tail + answer);
  const auto split = std::mismatch(
      together.begin(), together.begin() + static_cast<std::ptrdiff_t>(std::min(alone.size(), together.size())),
      alone.begin());
  return together.end() - split.first;
}

std::pair<std::int64_t, std::int64_t> find_span_tokens(const std::vector<std::size_t>& token_ends, ByteSpan span) {
  const auto first = std::upper_bound(token_ends.begin(), token_ends.end(), span.begin);
  const auto last = std::lower_bound(token_ends.begin(), token_ends.end(), span.end);
  return {first - token_ends.begin(), last - token_ends.begin()};
}

const std::vector<std::string>& said(const AnswerPlan& plan) {
  return plan.said.empty() ? plan.references : plan.said;
}

}  // namespace

ContextText join_context(const MeasuredHaystack& haystack, std::int64_t n_units, const std::vector<NeedleAt>& needles,
                         const std::string& joiner) {
  std::vector<std::size_t> order(needles.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&needles](std::size_t a, std::size_t b) { return needles[a].unit < needles[b].unit; });
  ContextText context;
  context.spans.resize(needles.size());
  auto next = order.begin();
  for (std::int64_t unit = 0; unit <= n_units; ++unit) {
    for (; next != order.end() && needles[*next].unit == unit; ++next) {
      if (!context.text.empty()) context.text += joiner;
      const std::size_t begin = context.text.size();
      context.text += needles[*next].text;
      context.spans[*next] = {begin, context.text.size()};
    }
    if (unit == n_units) break;
    const HaystackUnit& piece = haystack.units[static_cast<std::size_t>(unit)];
    if (!context.text.empty()) context.text += unit == 0 ? joiner : piece.separator;
    context.text += piece.text;
  }
  FATHOM_CHECK(next == order.end(), "a needle stands outside the haystack");
  return context;
}

PromptFrame render_layout(const std::string& layout, const text::SlotValues& values, std::string answer_prefix) {
  const std::size_t at = layout.find(kContextSlot);
  if (at == std::string::npos) throw ConfigError("the prompt pack's layout '" + layout + "' has no {context}");
  const std::string_view whole = layout;
  return {text::PromptPack::render(whole.substr(0, at), values),
          text::PromptPack::render(whole.substr(at + kContextSlot.size()), values),
          std::move(answer_prefix),
          {}};
}

PromptPositions fill_prompt(Sample& sample, const TaskContext& context, const PromptFrame& frame,
                            const ContextText& text) {
  const std::string& system = frame.system.empty() ? context.pack->text("common", "system") : frame.system;
  const text::PromptAssembler::Assembled assembled =
      context.assembler->assemble(system, frame.before + text.text + frame.after, frame.answer_prefix);
  PromptPositions positions;
  const std::size_t context_byte = assembled.task_offset + frame.before.size();
  positions.context_end_byte = context_byte + text.text.size();
  if (!text.spans.empty()) {
    const std::int64_t shift = assembled.bos_added ? 1 : 0;
    const TokenIds plain(assembled.ids.begin() + static_cast<std::ptrdiff_t>(shift), assembled.ids.end());
    const auto ends = context.assembler->tokenizer().token_end_offsets(assembled.text, plain);
    for (const ByteSpan& span : text.spans) {
      const auto [first, last] = find_span_tokens(ends, {context_byte + span.begin, context_byte + span.end});
      positions.span_tokens.emplace_back(first + shift, last + shift);
    }
  }
  sample.prompt_text = assembled.text;
  sample.prompt_ids = assembled.ids;
  const bool prefix_used = context.assembler->style() != text::PromptStyle::kChatNoPrefix;
  sample.answer_prefix = prefix_used ? frame.answer_prefix : std::string();
  return positions;
}

std::string answer_lead(const TaskContext& context, const std::string& prompt_text) {
  if (context.assembler->style() == text::PromptStyle::kChatNoPrefix || prompt_text.empty()) return {};
  constexpr std::string_view kNoBlankAfter = " \t\r\n\"'(";
  if (kNoBlankAfter.find(prompt_text.back()) != std::string_view::npos) return {};
  return context.pack->language() == "zh" ? std::string() : std::string(" ");
}

void fill_answer(Sample& sample, const TaskContext& context, const AnswerPlan& plan, std::size_t tail_byte) {
  sample.references = plan.references;
  sample.metric = plan.metric;
  sample.first_line = plan.first_line;
  sample.labels = plan.labels;
  sample.whole_words = context.pack->closed_vocabulary();
  sample.think_budget = context.think_tokens;
  sample.answer_text = plan.lead.value_or(answer_lead(context, sample.prompt_text)) + plan.join(said(plan));
  const std::int64_t answer_tokens =
      count_answer_tokens(context.assembler->tokenizer(), sample.prompt_text.substr(tail_byte), sample.answer_text);
  // Models trained here learn no stop: room for more words would let one that only knows the values in sight score.
  sample.generation_budget =
      sample.whole_words
          ? answer_tokens
          : std::max(plan.task_budget, answer_tokens + std::max<std::int64_t>(4, (answer_tokens + 3) / 4));
}

std::vector<std::string> make_candidates(const Sample& sample, const AnswerPlan& plan,
                                         std::vector<std::vector<std::string>> in_prompt, RngStream& aux,
                                         const std::function<std::optional<std::vector<std::string>>()>& fresh) {
  constexpr std::size_t kOthers = kMaxCandidates - 1;
  if (in_prompt.size() > kOthers) {
    std::vector<std::vector<std::string>> drawn;
    for (const std::uint64_t i : aux.sample_without_replacement(in_prompt.size(), kOthers))
      drawn.push_back(in_prompt[i]);
    in_prompt = std::move(drawn);
  }
  while (in_prompt.size() < kOthers) {
    auto values = fresh();
    if (!values) break;
    in_prompt.push_back(std::move(*values));
  }
  const std::string gold = plan.join(said(plan));
  const std::string lead = sample.answer_text.substr(0, sample.answer_text.size() - gold.size());
  std::vector<std::string> candidates = {sample.answer_text};
  for (const auto& values : in_prompt) candidates.push_back(lead + plan.join(values));
  return candidates;
}

}  // namespace fathom::task
