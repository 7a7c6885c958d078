#pragma once
// Chat templates by family name, and the assembly of a whole prompt as one string (tasks specification 0.2, 0.6).

#include <cstddef>
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

/// One family, for example "chatml". A conversation is `begin`, then its turns; a generation prompt is
/// `assistant_open`.
struct ChatTemplate {
  std::string name;
  std::string begin;  ///< in front of everything: BOS where the template spells it out
  std::string system_open, system_close;
  std::string system_preamble;  ///< at the head of every system turn; if not empty there always is one
  std::string user_open, user_close;
  std::string user_open_after_system;  ///< for the first user turn behind a system turn, where they share one header
  std::string assistant_open, assistant_gap, assistant_close;  ///< the gap stands in front of finished replies only
  std::string default_system;  ///< put in front if no system text is given; empty = none
  bool spells_bos = false;     ///< the text already begins with BOS: the engine adds none
  bool trims_content = false;  ///< white space around a message is dropped
  std::string end_of_turn;     ///< generation stops here
};

/// Families known by name: chatml, gemma, llama2, llama3, mistral, phi3, vicuna. \throws ConfigError
const ChatTemplate& chat_template(std::string_view name);
std::vector<std::string> chat_template_names();
/// Recognises the family of a checkpoint's Jinja template by its marks, and takes the default system text from it;
/// nothing if unknown.
std::optional<ChatTemplate> detect_chat_template(std::string_view jinja);

struct ChatMessage {
  std::string role;  ///< "system", "user", "assistant"
  std::string content;
};
/// Whether the header of the next reply ends the text.
enum class GenerationPrompt { kAdd, kOmit };
/// \throws DataError  for a role other than those three, or a system message that is not the first.
std::string render_chat(const ChatTemplate& family, const std::vector<ChatMessage>& messages, GenerationPrompt prompt);

/// Puts a task text into the model's form: style, template and BOS are fixed once per run.
class PromptAssembler {
 public:
  /// \param tokenizer  must outlive the assembler.
  /// \param family  required for the chat styles; copied. In the base style it only adds its end of turn to stop_ids().
  /// \throws ConfigError  for a chat style without a family, with a closed vocabulary, or with a family that spells a
  /// BOS the
  ///   tokenizer does not read as one.
  PromptAssembler(const Tokenizer& tokenizer, PromptStyle style, std::optional<ChatTemplate> family);

  struct Assembled {
    std::string text;         ///< whole prompt as one string, without an engine-added BOS
    std::size_t task_offset;  ///< byte offset of the task text in `text`
    TokenIds ids;             ///< tokens of `text`, BOS in front where the model wants one: exactly one BOS
    bool bos_added = false;   ///< ids[0] is a BOS that does not stand in `text`
  };
  /// The task text is kept byte by byte, also where the family trims messages.
  /// \param system  may be empty; left out in the base style. `answer_prefix` follows the assistant header directly
  /// (chat), the task text (base), or is left out (chat_noprefix).
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
