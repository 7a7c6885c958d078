#include "harness/text/chat_template.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/error.h"
#include "harness/text/word_tokenizer.h"
#include "tests/support/catch.h"
#include "tests/support/shared_dir.h"

using namespace fathom::text;
using fathom::ConfigError;
using fathom::DataError;
using fathom::InvariantError;
using fathom::TokenId;
using fathom::TokenIds;

namespace {

// One token a byte, and the special tokens <bos> = 256, <eos> = 257, <|im_start|> = 258, <|im_end|> = 259.
class ByteTokenizer : public Tokenizer {
 public:
  explicit ByteTokenizer(bool adds_bos) : adds_bos_(adds_bos) {}
  TokenIds encode(std::string_view text, SpecialTokens) const override {
    TokenIds ids;
    while (!text.empty()) {
      TokenId id = static_cast<unsigned char>(text.front());
      std::size_t size = 1;
      for (std::size_t s = 0; s < 4; ++s) {
        if (text.substr(0, kSpecials[s].size()) != kSpecials[s]) continue;
        id = static_cast<TokenId>(256 + s);
        size = kSpecials[s].size();
      }
      ids.push_back(id);
      text.remove_prefix(size);
    }
    return ids;
  }
  std::string decode(const TokenIds& ids) const override {
    std::string text;
    for (const TokenId id : ids) text += piece(id);
    return text;
  }
  std::string piece(TokenId id) const override {
    return id < 256 ? std::string(1, static_cast<char>(id)) : std::string(kSpecials[id - 256]);
  }
  std::int64_t vocab_size() const override { return 260; }
  std::optional<TokenId> bos() const override { return 256; }
  std::optional<TokenId> eos() const override { return 257; }
  bool adds_bos() const override { return adds_bos_; }
  std::string fingerprint() const override { return "bytes"; }

 private:
  static constexpr std::string_view kSpecials[4] = {"<bos>", "<eos>", "<|im_start|>", "<|im_end|>"};
  bool adds_bos_;
};
constexpr std::string_view ByteTokenizer::kSpecials[4];

template <typename Error, typename Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

const std::string kSmolSystem = "You are a helpful AI assistant named SmolLM, trained by Hugging Face";
// The shape of SmolLM2's template, line ends as the characters themselves.
const std::string kSmolJinja =
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n" +
    kSmolSystem +
    "<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + "
    "'\n'}}{% endfor %}";

}  // namespace

TEST_CASE("chat template: style names", "[text][chat_template]") {
  for (const std::string name : {"base", "chat", "chat_noprefix"}) CHECK(to_string(parse_prompt_style(name)) == name);
  CHECK(message_of<ConfigError>([] { parse_prompt_style("talk"); }) ==
        "unknown prompt style 'talk'; known: base, chat, chat_noprefix");
  CHECK(message_of<ConfigError>([] {
          chat_template("chatlm");
        }).find("unknown chat template 'chatlm'; did you mean 'chatml'?") == 0);
  CHECK(chat_template_names() ==
        std::vector<std::string>{"chatml", "gemma", "llama2", "llama3", "mistral", "phi3", "vicuna"});
}

TEST_CASE("chat template: families render a conversation in their own form", "[text][chat_template]") {
  const std::vector<ChatMessage> talk{{"system", "S"}, {"user", "U"}, {"assistant", "A"}, {"user", "V"}};
  const std::vector<ChatMessage> ask{{"user", " U "}};
  const auto both = [&](const std::string& name) {
    return render_chat(chat_template(name), talk, GenerationPrompt::kAdd) + "#" +
           render_chat(chat_template(name), ask, GenerationPrompt::kOmit);
  };
  CHECK(both("chatml") ==
        "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n<|im_"
        "start|>user\nV<|im_end|>\n"
        "<|im_start|>assistant\n#<|im_start|>user\n U <|im_end|>\n");
  CHECK(both("gemma") ==
        "<bos><start_of_turn>user\nS\n\nU<end_of_turn>\n<start_of_turn>model\nA<end_of_turn>\n<start_of_turn>user\nV<"
        "end_of_turn>\n"
        "<start_of_turn>model\n#<bos><start_of_turn>user\nU<end_of_turn>\n");
  CHECK(both("llama2") == "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\nU [/INST] A </s><s>[INST] V [/INST]#<s>[INST] U [/INST]");
  CHECK(both("llama3") ==
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|><|start_header_id|>user<|end_header_"
        "id|>\n\nU<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\nA<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nV<|"
        "eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n#<|begin_of_text|><|start_header_id|>user<|end_header_id|>"
        "\n\nU<|eot_id|>");
  CHECK(both("mistral") == "<s>[INST] S\n\nU [/INST] A</s>[INST] V [/INST]#<s>[INST]  U  [/INST]");
  CHECK(both("phi3") ==
        "<|system|>\nS<|end|>\n<|user|>\nU<|end|>\n<|assistant|>\nA<|end|>\n<|user|>\nV<|end|>\n<|assistant|>\n#"
        "<|user|>\n U <|end|>\n");
  CHECK(both("vicuna") == "S USER: U ASSISTANT: A</s>USER: V ASSISTANT:#USER:  U  ");
  CHECK(message_of<DataError>([&] {
          render_chat(chat_template("chatml"), {{"user", "U"}, {"system", "S"}}, GenerationPrompt::kOmit);
        }) == "message 2 has role 'system'; allowed: system (first message only), user, assistant");
}

TEST_CASE("chat template: a checkpoint's template is recognised by its marks", "[text][chat_template]") {
  const auto smol = detect_chat_template(kSmolJinja);
  REQUIRE(smol);
  CHECK(smol->name == "chatml");
  CHECK(smol->default_system == kSmolSystem);
  CHECK(render_chat(*smol, {{"user", "U"}}, GenerationPrompt::kAdd) ==
        "<|im_start|>system\n" + kSmolSystem + "<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n");
  // Line ends spelled as escapes; the first system turn is put together from a variable and is no default.
  const auto escaped = detect_chat_template(
      "{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}{{- '<|im_start|>system\\nIt\\'s "
      "me.<|im_end|>\\n' }}");
  REQUIRE(escaped);
  CHECK(escaped->default_system == "It's me.");
  const auto none =
      detect_chat_template("{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n'}}");
  REQUIRE(none);
  CHECK(none->default_system.empty());
  CHECK(detect_chat_template("{{'<|start_header_id|>'}}{{'<|eot_id|>'}}")->name == "llama3");
  CHECK(detect_chat_template("{{'<start_of_turn>'}}{{'<end_of_turn>'}}")->name == "gemma");
  CHECK(detect_chat_template("<|user|> <|assistant|> <|end|>")->name == "phi3");
  CHECK(detect_chat_template("'[INST] <<SYS>>\\n' '[/INST]'")->name == "llama2");
  CHECK(detect_chat_template("'[INST] ' ' [/INST]'")->user_close == " [/INST]");
  CHECK(detect_chat_template("'[INST]' '[/INST]'")->user_open == "[INST]");
  CHECK(detect_chat_template("USER: ASSISTANT:")->name == "vicuna");
  CHECK_FALSE(detect_chat_template("{{ message['content'] }}"));
  CHECK_FALSE(detect_chat_template(""));
}

TEST_CASE("chat template: Llama 3.1 always has a system turn with two dates", "[text][chat_template]") {
  const auto family = detect_chat_template(
      "<|start_header_id|> <|eot_id|> {{- \"Cutting Knowledge Date: December 2023\\n\" }} {%- set date_string = \"26 "
      "Jul 2024\" %}");
  REQUIRE(family);
  CHECK(render_chat(*family, {{"user", "U"}}, GenerationPrompt::kOmit) ==
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\nToday "
        "Date: 26 Jul 2024\n\n"
        "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nU<|eot_id|>");
}

TEST_CASE("chat template: SmolLM2's conversations are rendered byte for byte", "[text][chat_template][shared]") {
  FATHOM_NEEDS_SHARED("fixtures/real/chat_smollm2.json");
  const auto root = nlohmann::json::parse(std::ifstream(fathom::test::shared_path("fixtures/real/chat_smollm2.json")));
  const auto family = detect_chat_template(root.at("chat_template").get<std::string>());
  REQUIRE(family);
  REQUIRE(root.at("cases").size() == 3);
  for (const auto& each : root.at("cases")) {
    std::vector<ChatMessage> messages;
    for (const auto& message : each.at("messages")) messages.push_back({message.at("role"), message.at("content")});
    CHECK(render_chat(*family, messages, GenerationPrompt::kAdd) == each.at("rendered").get<std::string>());
    CHECK(render_chat(*family, messages, GenerationPrompt::kOmit) ==
          each.at("rendered_without_generation_prompt").get<std::string>());
  }
}

TEST_CASE("prompt assembler: base is the task text and its prefix, nothing else", "[text][prompt_assembler]") {
  const ByteTokenizer tokenizer(false);
  const PromptAssembler assembler(tokenizer, PromptStyle::kBase, std::nullopt);
  const auto out = assembler.assemble("system", "task", " prefix");
  CHECK(out.text == "task prefix");
  CHECK(out.task_offset == 0);
  CHECK(out.ids == tokenizer.encode("task prefix", SpecialTokens::kParse));
  CHECK_FALSE(out.bos_added);
  CHECK(assembler.stop_ids() == std::vector<TokenId>{257});
  CHECK(assembler.fingerprint() == "style=base");
}

TEST_CASE("prompt assembler: chat puts the prefix directly behind the assistant header", "[text][prompt_assembler]") {
  const ByteTokenizer tokenizer(false);
  ChatTemplate family = chat_template("chatml");
  const PromptAssembler chat(tokenizer, PromptStyle::kChat, family);
  const auto out = chat.assemble("Be short.", "task\n", " It is");
  CHECK(out.text ==
        "<|im_start|>system\nBe short.<|im_end|>\n<|im_start|>user\ntask\n<|im_end|>\n<|im_start|>assistant\n It is");
  CHECK(out.text.substr(out.task_offset, 5) == "task\n");
  CHECK(out.ids == tokenizer.encode(out.text, SpecialTokens::kParse));
  CHECK(chat.encode_whole(out.text) == out.ids);
  CHECK(chat.stop_ids() == std::vector<TokenId>{257, 259});
  const PromptAssembler noprefix(tokenizer, PromptStyle::kChatNoPrefix, family);
  CHECK(noprefix.assemble("", "task", " It is").text == "<|im_start|>user\ntask<|im_end|>\n<|im_start|>assistant\n");
  family.default_system = "D";
  const PromptAssembler with_default(tokenizer, PromptStyle::kChat, family);
  CHECK(with_default.assemble("", "t", "").text == render_chat(family, {{"user", "t"}}, GenerationPrompt::kAdd));
  CHECK(with_default.fingerprint() != chat.fingerprint());
  CHECK(noprefix.fingerprint() != chat.fingerprint());
}

TEST_CASE("prompt assembler: exactly one BOS, whoever writes it", "[text][prompt_assembler]") {
  const ByteTokenizer adds(true);
  const PromptAssembler base(adds, PromptStyle::kBase, std::nullopt);
  const auto added = base.assemble("", "a", "");
  CHECK(added.ids == TokenIds{256, 'a'});
  CHECK(added.bos_added);
  const auto spelled_by_text = base.assemble("", "<bos>a", "");
  CHECK(spelled_by_text.ids == TokenIds{256, 'a'});
  CHECK_FALSE(spelled_by_text.bos_added);
  CHECK_THROWS_AS(base.assemble("", "<bos><bos>a", ""), InvariantError);
  for (const bool tokenizer_adds : {false, true}) {
    const ByteTokenizer tokenizer(tokenizer_adds);
    const PromptAssembler gemma(tokenizer, PromptStyle::kChat, chat_template("gemma"));
    const auto out = gemma.assemble("S", "task", "");
    CHECK(out.text.substr(0, 20) == "<bos><start_of_turn>");
    CHECK(out.text.substr(out.task_offset, 4) == "task");
    CHECK(std::count(out.ids.begin(), out.ids.end(), 256) == 1);
    CHECK(out.ids.front() == 256);
    CHECK_FALSE(out.bos_added);
  }
  const PromptAssembler chatml(adds, PromptStyle::kChat, chat_template("chatml"));
  CHECK(chatml.assemble("", "t", "").bos_added);
}

TEST_CASE("prompt assembler: closed vocabularies are base only", "[text][prompt_assembler]") {
  const WordTokenizer words(VocabularySpec{}, true);
  const PromptAssembler assembler(words, PromptStyle::kBase, std::nullopt);
  const auto out = assembler.assemble("", "note k1 v2 ask k1", " is");
  CHECK(out.ids == words.encode("<bos> note k1 v2 ask k1 is"));
  CHECK(out.bos_added);
  CHECK(assembler.stop_ids() == std::vector<TokenId>{WordTokenizer::kEos});
  CHECK(message_of<ConfigError>([&] {
          PromptAssembler(words, PromptStyle::kChat, chat_template("chatml"));
        }).find("closed vocabulary") != std::string::npos);
}

TEST_CASE("prompt assembler: a chat style without a fitting family is refused", "[text][prompt_assembler][errors]") {
  const ByteTokenizer tokenizer(false);
  CHECK(message_of<ConfigError>([&] { PromptAssembler(tokenizer, PromptStyle::kChat, std::nullopt); }) ==
        "prompt.style = chat needs a chat template, and the model names none that is known; set prompt.template to one "
        "of chatml, gemma, "
        "llama2, llama3, mistral, phi3, vicuna, or prompt.style = base");
  CHECK(message_of<ConfigError>([&] { PromptAssembler(tokenizer, PromptStyle::kChat, chat_template("llama3")); }) ==
        "chat template 'llama3' begins with '<|begin_of_text|>', which this model's tokenizer does not read as its "
        "BOS; set "
        "prompt.template to the model's own family");
}
