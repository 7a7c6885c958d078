#include "harness/text/chat_template.h"

#include <utility>

#include "harness/core/error.h"
#include "harness/core/registry.h"
#include "harness/core/text_util.h"

namespace fathom::text {
namespace {

ChatTemplate chatml_family() {
  ChatTemplate t;
  t.name = "chatml";
  t.system_open = "<|im_start|>system\n";
  t.user_open = t.user_open_after_system = "<|im_start|>user\n";
  t.assistant_open = "<|im_start|>assistant\n";
  t.system_close = t.user_close = t.assistant_close = "<|im_end|>\n";
  t.end_of_turn = "<|im_end|>";
  return t;
}

ChatTemplate gemma_family() {
  ChatTemplate t;
  t.name = "gemma";
  t.begin = "<bos>";
  t.spells_bos = true;
  t.trims_content = true;
  t.user_open = t.system_open = "<start_of_turn>user\n";  // no system role: its text heads the user's turn
  t.system_close = "\n\n";
  t.assistant_open = "<start_of_turn>model\n";
  t.user_close = t.assistant_close = "<end_of_turn>\n";
  t.end_of_turn = "<end_of_turn>";
  return t;
}

ChatTemplate llama2_family() {
  ChatTemplate t;
  t.name = "llama2";
  t.spells_bos = true;
  t.trims_content = true;
  t.system_open = "<s>[INST] <<SYS>>\n";
  t.system_close = "\n<</SYS>>\n\n";
  t.user_open = "<s>[INST] ";
  t.user_close = " [/INST]";
  t.assistant_gap = " ";
  t.assistant_close = " </s>";
  t.end_of_turn = "</s>";
  return t;
}

ChatTemplate llama3_family() {
  ChatTemplate t;
  t.name = "llama3";
  t.begin = "<|begin_of_text|>";
  t.spells_bos = true;
  t.trims_content = true;
  t.system_open = "<|start_header_id|>system<|end_header_id|>\n\n";
  t.user_open = t.user_open_after_system = "<|start_header_id|>user<|end_header_id|>\n\n";
  t.assistant_open = "<|start_header_id|>assistant<|end_header_id|>\n\n";
  t.system_close = t.user_close = t.assistant_close = t.end_of_turn = "<|eot_id|>";
  return t;
}

ChatTemplate mistral_family() {
  ChatTemplate t;
  t.name = "mistral";
  t.begin = "<s>";
  t.spells_bos = true;
  t.user_open = t.system_open = "[INST] ";  // no system role: its text heads the user's turn
  t.system_close = "\n\n";
  t.user_close = " [/INST]";
  t.assistant_gap = " ";
  t.assistant_close = t.end_of_turn = "</s>";
  return t;
}

ChatTemplate phi3_family() {
  ChatTemplate t;
  t.name = "phi3";
  t.system_open = "<|system|>\n";
  t.user_open = t.user_open_after_system = "<|user|>\n";
  t.assistant_open = "<|assistant|>\n";
  t.system_close = t.user_close = t.assistant_close = "<|end|>\n";
  t.end_of_turn = "<|end|>";
  return t;
}

ChatTemplate vicuna_family() {
  ChatTemplate t;
  t.name = "vicuna";
  t.system_close = " ";
  t.user_open = t.user_open_after_system = "USER: ";
  t.user_close = " ";
  t.assistant_open = "ASSISTANT:";
  t.assistant_gap = " ";
  t.assistant_close = t.end_of_turn = "</s>";
  return t;
}

const Registry<ChatTemplate>& chat_families() {
  static const Registry<ChatTemplate> families = [] {
    std::vector<ChatTemplate> all{chatml_family(),  gemma_family(), llama2_family(), llama3_family(),
                                  mistral_family(), phi3_family(),  vicuna_family()};
    return Registry<ChatTemplate>("chat template", std::move(all));
  }();
  return families;
}

// What only the templates of one family hold. Looked up in this order: a Llama 2 template holds Mistral's marks too.
struct ChatFamilyMarks {
  std::string_view family;
  std::vector<std::string_view> marks;
};

const std::vector<ChatFamilyMarks>& chat_family_marks() {
  static const std::vector<ChatFamilyMarks> marks{{"chatml", {"<|im_start|>", "<|im_end|>"}},
                                                  {"llama3", {"<|start_header_id|>", "<|eot_id|>"}},
                                                  {"gemma", {"<start_of_turn>", "<end_of_turn>"}},
                                                  {"phi3", {"<|user|>", "<|assistant|>", "<|end|>"}},
                                                  {"llama2", {"[INST]", "<<SYS>>"}},
                                                  {"mistral", {"[INST]", "[/INST]"}},
                                                  {"vicuna", {"USER:", "ASSISTANT:"}}};
  return marks;
}

bool jinja_holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// A Jinja string literal as text. A quote ends it, so a piece with one inside is no whole literal.
std::optional<std::string> jinja_literal(std::string_view source) {
  std::string text;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\'' || source[i] == '"') return std::nullopt;
    if (source[i] != '\\' || i + 1 == source.size()) {
      text += source[i];
      continue;
    }
    const char next = source[++i];
    if (next == 'n')
      text += '\n';
    else if (next == 't')
      text += '\t';
    else
      text += next;
  }
  return text;
}

// A line end inside a Jinja literal: the character itself, or spelled as an escape.
constexpr std::string_view kJinjaLineEnds[] = {"\n", "\\n"};

// The first system turn that stands in the template as one literal.
std::string default_system_of(std::string_view jinja, const ChatTemplate& family) {
  if (family.system_open.empty() || family.system_open.back() != '\n') return {};
  const std::string header = family.system_open.substr(0, family.system_open.find('\n'));
  for (auto at = jinja.find(header); at != std::string_view::npos; at = jinja.find(header, at + 1)) {
    std::string_view rest = jinja.substr(at + header.size());
    for (const std::string_view line_end : kJinjaLineEnds) {
      if (!starts_with(rest, line_end)) continue;
      rest.remove_prefix(line_end.size());
      const auto text = jinja_literal(rest.substr(0, rest.find(family.end_of_turn)));
      if (text && !text->empty() && jinja_holds(rest, family.end_of_turn)) return *text;
      break;
    }
  }
  return {};
}

// Llama 3.1 and later put two dates in front of every system text. The second is a fixed one where the caller gives
// none.
std::string llama3_preamble_of(std::string_view jinja) {
  if (!jinja_holds(jinja, "Cutting Knowledge Date: December 2023")) return {};
  const bool july = jinja_holds(jinja, "26 Jul 2024");
  return std::string("Cutting Knowledge Date: December 2023\nToday Date: ") + (july ? "26 Jul 2024" : "26 July 2024") +
         "\n\n";
}

std::string trimmed_content(const ChatTemplate& family, std::string_view content) {
  return std::string(family.trims_content ? trim(content) : content);
}

}  // namespace

PromptStyle parse_prompt_style(std::string_view name) {
  for (const PromptStyle style : {PromptStyle::kBase, PromptStyle::kChat, PromptStyle::kChatNoPrefix}) {
    if (name == to_string(style)) return style;
  }
  throw ConfigError("unknown prompt style '" + std::string(name) + "'; known: base, chat, chat_noprefix");
}

std::string_view to_string(PromptStyle style) {
  switch (style) {
    case PromptStyle::kBase:
      return "base";
    case PromptStyle::kChat:
      return "chat";
    case PromptStyle::kChatNoPrefix:
      return "chat_noprefix";
  }
  FATHOM_CHECK(false, "unknown prompt style");
}

const ChatTemplate& chat_template(std::string_view name) {
  return chat_families().at(name);
}

std::vector<std::string> chat_template_names() {
  return chat_families().names();
}

std::optional<ChatTemplate> detect_chat_template(std::string_view jinja) {
  for (const ChatFamilyMarks& candidate : chat_family_marks()) {
    bool all = true;
    for (const std::string_view mark : candidate.marks) all = all && jinja_holds(jinja, mark);
    if (!all) continue;
    ChatTemplate family = chat_template(candidate.family);
    family.default_system = default_system_of(jinja, family);
    if (family.name == "llama3") family.system_preamble = llama3_preamble_of(jinja);
    if (family.name == "mistral") {  // the blanks inside the marks differ between its versions
      if (!jinja_holds(jinja, "[INST] ")) family.user_open = family.system_open = "[INST]";
      if (!jinja_holds(jinja, " [/INST]")) family.user_close = "[/INST]";
    }
    return family;
  }
  return std::nullopt;
}

std::string render_chat(const ChatTemplate& family, const std::vector<ChatMessage>& messages, GenerationPrompt prompt) {
  std::string text = family.begin;
  const bool given = !messages.empty() && messages.front().role == "system";
  const std::string system = given ? trimmed_content(family, messages.front().content) : family.default_system;
  bool after_system = !system.empty() || !family.system_preamble.empty() || given;
  if (after_system) text += family.system_open + family.system_preamble + system + family.system_close;
  for (std::size_t i = given ? 1 : 0; i < messages.size(); ++i) {
    const std::string content = trimmed_content(family, messages[i].content);
    if (messages[i].role == "user") {
      text += (after_system ? family.user_open_after_system : family.user_open) + content + family.user_close;
      after_system = false;
    } else if (messages[i].role == "assistant") {
      text += family.assistant_open + family.assistant_gap + content + family.assistant_close;
    } else {
      throw DataError("message " + std::to_string(i + 1) + " has role '" + messages[i].role +
                      "'; allowed: system (first message only), user, assistant");
    }
  }
  if (prompt == GenerationPrompt::kAdd) text += family.assistant_open;
  return text;
}

}  // namespace fathom::text
