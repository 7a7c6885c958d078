// Tokenizers as the files of a checkpoint give them.

#include "harness/checkpoint/tokenizer_source.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "harness/core/error.h"
#include "tests/checkpoint/file_builders.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/shared_dir.h"

namespace fathom::checkpoint {
namespace {

std::string float_list(const std::vector<float>& values) {
  std::string bytes;
  test::append_number<std::uint32_t>(bytes, 6);
  test::append_number<std::uint64_t>(bytes, values.size());
  for (const float value : values) test::append_number(bytes, value);
  return bytes;
}

/// <unk> <s> </s> "▁" a "▁a"
test::GgufBuilder sentencepiece_gguf(const std::string& model) {
  test::GgufBuilder builder;
  builder.text("tokenizer.ggml.model", model)
      .text_list("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "\xE2\x96\x81", "a",
                                           "\xE2\x96\x81"
                                           "a"})
      .raw("tokenizer.ggml.scores", 9, float_list({0, 0, 0, -2, -3, -1}))
      .uint32_list("tokenizer.ggml.token_type", {2, 3, 3, 1, 1, 1})
      .uint32("tokenizer.ggml.bos_token_id", 1)
      .uint32("tokenizer.ggml.eos_token_id", 2);
  return builder;
}

std::unique_ptr<text::Tokenizer> gguf_tokenizer(const test::GgufBuilder& builder) {
  const std::string bytes = builder.bytes();
  return make_gguf_tokenizer(GgufFile::parse(bytes, "m.gguf"));
}

TEST_CASE("gguf tokenizer: llama has a BOS and a blank in front unless the file says otherwise",
          "[checkpoint][tokenizer]") {
  const auto plain = gguf_tokenizer(sentencepiece_gguf("llama"));
  CHECK(plain->encode("a a") == TokenIds{5, 5});
  CHECK(plain->adds_bos());
  CHECK_FALSE(plain->adds_eos());
  const auto told = gguf_tokenizer(
      sentencepiece_gguf("llama").flag("tokenizer.ggml.add_space_prefix", 0).flag("tokenizer.ggml.add_bos_token", 0));
  CHECK(told->encode("a a") == TokenIds{4, 5});
  CHECK_FALSE(told->adds_bos());
}

TEST_CASE("gguf tokenizer: t5 is a unigram model that ends with EOS", "[checkpoint][tokenizer]") {
  const auto tokenizer = gguf_tokenizer(sentencepiece_gguf("t5").flag("tokenizer.ggml.remove_extra_whitespaces", 1));
  CHECK(tokenizer->encode("  a   a ") == TokenIds{5, 5});
  CHECK_FALSE(tokenizer->adds_bos());
  CHECK(tokenizer->adds_eos());
}

TEST_CASE("gguf tokenizer: what is missing or does not fit is named", "[checkpoint][tokenizer][errors]") {
  const auto error = [](const test::GgufBuilder& builder) {
    return test::model_error([&] { gguf_tokenizer(builder); });
  };
  CHECK(error(test::GgufBuilder().text("tokenizer.ggml.model", "rwkv")) ==
        "model: m.gguf: tokenizer.ggml.model = 'rwkv' is not supported; supported: gpt2 (byte-level BPE), llama "
        "(SentencePiece BPE), t5 (SentencePiece unigram)");
  test::GgufBuilder few;
  few.text("tokenizer.ggml.model", "llama").text_list("tokenizer.ggml.tokens", {"a", "b"});
  CHECK(error(few) == "model: m.gguf: tokenizer.ggml.scores is missing");
  few.raw("tokenizer.ggml.scores", 9, float_list({0}));
  CHECK(error(few) == "model: m.gguf: tokenizer.ggml.scores has 1 entries for 2 tokens");
}

constexpr const char* kTokenizerJson = R"({
  "added_tokens": [{"id": 3, "content": "<s>", "special": true}, {"id": 4, "content": "</s>", "special": true}],
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})";

TEST_CASE("folder tokenizer: tokenizer_config.json names BOS and EOS", "[checkpoint][tokenizer]") {
  const test::TemporaryFolder folder("tokenizer");
  folder.write("tokenizer.json", kTokenizerJson);
  folder.write("config.json", R"({"model_type": "llama", "bos_token_id": 3, "eos_token_id": [4, 3]})");
  auto tokenizer = make_folder_tokenizer(folder.path());
  CHECK(tokenizer->encode("ab<s>") == TokenIds{2, 3});
  CHECK(tokenizer->bos() == 3);
  CHECK_FALSE(tokenizer->eos().has_value());
  CHECK_FALSE(tokenizer->adds_bos());
  folder.write("tokenizer_config.json",
               R"({"bos_token": {"content": "<s>", "lstrip": false}, "eos_token": "</s>", "add_bos_token": true})");
  tokenizer = make_folder_tokenizer(folder.path());
  CHECK(tokenizer->eos() == 4);
  CHECK(tokenizer->adds_bos());
}

TEST_CASE("folder tokenizer: tokenizer_config.json may add tokens and change those of tokenizer.json",
          "[checkpoint][tokenizer]") {
  const test::TemporaryFolder folder("tokenizer_added");
  folder.write("tokenizer.json", kTokenizerJson);
  folder.write("tokenizer_config.json", R"({"bos_token": "ab", "eos_token": "<|im_end|>", "model_max_length": Infinity,
    "added_tokens_decoder": {"3": {"content": "<s>", "lstrip": true, "special": true, "normalized": false},
                             "5": {"content": "<|im_end|>", "special": true, "normalized": false}}})");
  const auto tokenizer = make_folder_tokenizer(folder.path());
  CHECK(tokenizer->bos() == 2);  // a piece of the vocabulary
  CHECK(tokenizer->eos() == 5);
  CHECK(tokenizer->encode("a  <s><|im_end|>") == TokenIds{0, 3, 5});
  folder.write("tokenizer_config.json", R"({"eos_token": "", "x": "\"Infinity", "chat_template": "NaN"})");
  CHECK_FALSE(make_folder_tokenizer(folder.path())->eos().has_value());
  folder.write("tokenizer_config.json", R"({"added_tokens_decoder": {"x": {"content": "<s>"}}})");
  CHECK(test::contains(test::model_error([&] { make_folder_tokenizer(folder.path()); }),
                       "added_tokens_decoder.x is no token id"));
}

TEST_CASE("folder tokenizer: tokenizer.model serves where tokenizer.json is missing", "[checkpoint][tokenizer]") {
  const test::TemporaryFolder folder("tokenizer_model");
  CHECK(test::contains(test::model_error([&] { make_folder_tokenizer(folder.path()); }),
                       "holds neither tokenizer.json nor tokenizer.model"));
  // Pieces <unk> (type 2), <s> (type 3), a; model_type BPE.
  folder.write("tokenizer.model", std::string("\x0A\x09\x0A\x05<unk>\x18\x02"
                                              "\x0A\x07\x0A\x03<s>\x18\x03"
                                              "\x0A\x03\x0A\x01"
                                              "a"
                                              "\x12\x02\x18\x02"));
  const auto tokenizer = make_folder_tokenizer(folder.path());
  CHECK(tokenizer->piece(2) == "a");
  CHECK(tokenizer->adds_bos());
  CHECK(tokenizer->bos() == 1);
}

TEST_CASE("Gemma 3: ids equal the reference's in every case and in the whole text", "[checkpoint][tokenizer][real]") {
  FATHOM_NEEDS_SHARED("fixtures/real/parity_gemma3.json");
  const char* models = std::getenv("FATHOM_MODELS");
  const std::string path = std::string(models == nullptr ? "" : models) + "/gemma-3-270m-q4_k_m.gguf";
  if (!std::filesystem::exists(path)) {
    WARN("SKIPPED: set FATHOM_MODELS to a folder that holds gemma-3-270m-q4_k_m.gguf");
    return;
  }
  const auto tokenizer = make_gguf_tokenizer(GgufFile::open(path));
  const nlohmann::json fixture = test::read_json_file(test::shared_path("fixtures/real/parity_gemma3.json"));
  int run = 0;
  for (const nlohmann::json& example : fixture["tokenizer"]["cases"]) {
    const std::string text = example["text"];
    INFO("text '" << text << "'");
    const TokenIds ids = tokenizer->encode(text);
    CHECK(ids == example["ids"].get<TokenIds>());
    CHECK(tokenizer->decode(ids) == text);
    const auto ends = tokenizer->token_end_offsets(text, ids);
    CHECK((ends.empty() ? 0 : ends.back()) == text.size());
    ++run;
  }
  CHECK(run == 23);
  CHECK(tokenizer->adds_bos());
  std::ifstream file(test::shared_path("fixtures/real/text.txt"), std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  TokenIds ids = tokenizer->encode(text);
  ids.insert(ids.begin(), *tokenizer->bos());
  CHECK(ids == fixture["input_ids"].get<TokenIds>());
}

}  // namespace
}  // namespace fathom::checkpoint
