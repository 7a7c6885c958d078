#pragma once
// Chat templates by family name, and the assembly of a whole prompt as one string (tasks specification 0.2, 0.6).

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/types.h"
#include "harness/text/tokenizer.h"

namespace fathom::text {

enum class PromptStyle { kBase, kChat, kChatNoPrefix };

/// "base", "chat", "chat_noprefix". \throws ConfigError
PromptStyle parse_prompt_style(std::string_view name);
std::string_view to_string(PromptStyle style);

/// One family, for example "chatml".
struct ChatTemplate {
  std::string name;
  std::string system_open, system_close;
  std::string user_open, user_close;
  std::string assistant_open, assistant_close;
  std::string default_system;  ///< put in front if no system text is given; empty = none
  bool spells_bos = false;     ///< the text already begins with BOS: the engine adds none
  std::string end_of_turn;     ///< generation stops here
};

/// Families known by name. \throws ConfigError
const ChatTemplate& chat_template(std::string_view name);
std::vector<std::string> chat_template_names();
/// Recognises the family of a checkpoint's Jinja template by its marks, and takes the default system text from it;
/// nothing if unknown.
std::optional<ChatTemplate> detect_chat_template(std::string_view jinja);

struct ChatMessage {
  std::string role;  ///< "system", "user", "assistant"
  std::string content;
};
std::string render_chat(const ChatTemplate& family, const std::vector<ChatMessage>& messages,
                        bool add_generation_prompt);

/// Puts a task text into the model's form: style, template and BOS are fixed once per run.
class PromptAssembler {
 public:
  /// \param family  required for the chat styles. Not stored beyond the assembler's life: copied.
  PromptAssembler(const Tokenizer& tokenizer, PromptStyle style, std::optional<ChatTemplate> family);

  struct Assembled {
    std::string text;         ///< whole prompt as one string, without an engine-added BOS
    std::size_t task_offset;  ///< byte offset of the task text in `text`
    TokenIds ids;             ///< tokens of `text`, BOS in front where the model wants one: exactly one BOS
    bool bos_added = false;   ///< ids[0] is a BOS that does not stand in `text`
  };
  /// \param system  may be empty. `answer_prefix` follows the assistant header directly (chat), the task text (base),
  /// or is left out (chat_noprefix).
  Assembled assemble(std::string_view system, std::string_view task_text, std::string_view answer_prefix) const;
  /// The tokens of `text`, BOS rule applied; what assemble() does last. For continuations.
  TokenIds encode_whole(std::string_view text) const;

  const Tokenizer& tokenizer() const { return tokenizer_; }
  PromptStyle style() const { return style_; }
  /// EOS, end of turn.
  std::vector<TokenId> stop_ids() const;
  /// Canonical text of style and template; part of every sample's address.
  std::string fingerprint() const;

 private:
  const Tokenizer& tokenizer_;
  PromptStyle style_;
  std::optional<ChatTemplate> family_;
};

}  // namespace fathom::text
