#include "harness/text/bpe_tokenizer.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "harness/core/error.h"
#include "harness/core/random.h"
#include "harness/text/chat_template.h"
#include "harness/text/prose.h"
#include "tests/support/catch.h"
#include "tests/support/gguf_vocabulary.h"
#include "tests/support/shared_dir.h"

using namespace fathom::text;
using fathom::DataError;
using fathom::InvariantError;
using fathom::TokenId;
using fathom::TokenIds;

namespace {

std::string utf8_of(std::uint32_t code) {
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xC0U | (code >> 6U)), static_cast<char>(0x80U | (code & 0x3FU))};
}

// GPT-2's table written out once more: visible bytes are themselves, the others U+0100 and up.
std::string spelling_of(const std::string& bytes) {
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174) {
      out += utf8_of(byte);
    } else if (byte <= 32) {
      out += utf8_of(0x100U + byte);
    } else if (byte <= 160) {
      out += utf8_of(0x100U + 33U + byte - 127U);
    } else {
      out += utf8_of(0x143);
    }
  }
  return out;
}

constexpr TokenId kFirstByte = 4;

// Ids: 0 <|end|>, 1 <|en|>, 2 <|end|>ing (user defined), 3 <unused>; 4 to 259 the bytes; then the merges.
BpeVocabulary small_vocabulary(const std::vector<std::pair<std::string, std::string>>& merges,
                               const std::string& pretokenizer = "gpt-2") {
  BpeVocabulary out;
  out.pieces = {"<|end|>", "<|en|>", "<|end|>ing", "<unused>"};
  out.token_types = {3, 3, 4, 5};
  for (int byte = 0; byte < 256; ++byte) out.pieces.push_back(spelling_of(std::string(1, static_cast<char>(byte))));
  for (const auto& [left, right] : merges) {
    out.pieces.push_back(spelling_of(left + right));
    out.merges.push_back(spelling_of(left) + " " + spelling_of(right));
  }
  out.token_types.resize(out.pieces.size(), 1);
  out.pretokenizer = pretokenizer;
  out.bos = 0;
  out.eos = 1;
  return out;
}

const std::vector<std::pair<std::string, std::string>> kMerges{{"l", "l"},   {"h", "e"},       {"e", "l"},
                                                               {"he", "ll"}, {" ", "he"},      {"o", "o"},
                                                               {"oo", "oo"}, {"\xE6", "\x98"}, {"\xE6\x98", "\xAF"}};

// Id of the n-th merge's token.
TokenId merged(int n) {
  return kFirstByte + 256 + n;
}
TokenId byte(char c) {
  return kFirstByte + static_cast<unsigned char>(c);
}

std::string error_of(BpeVocabulary vocabulary) {
  try {
    make_bpe_tokenizer(std::move(vocabulary), "m.gguf");
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

constexpr const char* kSmolFile = "SmolLM2-135M-Instruct.Q4_1.gguf";

const Tokenizer& smol_tokenizer() {
  static const auto tokenizer =
      make_bpe_tokenizer(fathom::test::GgufMetadata(fathom::test::model_path(kSmolFile)).vocabulary(), kSmolFile);
  return *tokenizer;
}

}  // namespace

TEST_CASE("bpe: the best-ranked pair goes first, the leftmost of equals", "[text][bpe]") {
  const auto tokenizer = make_bpe_tokenizer(small_vocabulary(kMerges), "m.gguf");
  // h e l l: "l l" has rank 0, so "e l" never gets its chance; then "h e", then "he ll".
  CHECK(tokenizer->encode("hell") == TokenIds{merged(3)});
  CHECK(tokenizer->encode("hel") == TokenIds{merged(1), byte('l')});
  CHECK(tokenizer->encode("el") == TokenIds{merged(2)});
  CHECK(tokenizer->encode("lll") == TokenIds{merged(0), byte('l')});
  // " " and "he" merge only after "he" and "ll" had their turn.
  CHECK(tokenizer->encode(" hell") == TokenIds{byte(' '), merged(3)});
  CHECK(tokenizer->encode(" he") == TokenIds{merged(4)});
  CHECK(tokenizer->encode("ooooooo") == TokenIds{merged(6), merged(5), byte('o')});
  CHECK(tokenizer->encode("").empty());
}

TEST_CASE("bpe: characters of several bytes merge byte by byte", "[text][bpe]") {
  const auto tokenizer = make_bpe_tokenizer(small_vocabulary(kMerges), "m.gguf");
  CHECK(tokenizer->encode("是") == TokenIds{merged(8)});
  CHECK(tokenizer->encode("昿") == TokenIds{merged(7), byte('\xBF')});
  CHECK(tokenizer->encode("😀") == TokenIds{byte('\xF0'), byte('\x9F'), byte('\x98'), byte('\x80')});
  CHECK(tokenizer->encode("e\u0301") == TokenIds{byte('e'), byte('\xCC'), byte('\x81')});
  // Not UTF-8: each byte by itself, so the merge of the first two does not apply.
  CHECK(tokenizer->encode("\xE6\x98") == TokenIds{byte('\xE6'), byte('\x98')});
}

TEST_CASE("bpe: special tokens are cut out first, the longest one", "[text][bpe]") {
  const auto tokenizer = make_bpe_tokenizer(small_vocabulary(kMerges), "m.gguf");
  CHECK(tokenizer->encode("he<|end|>he") == TokenIds{merged(1), 0, merged(1)});
  CHECK(tokenizer->encode("<|end|>ing<|en|><|en") == [&] {
    TokenIds ids{2, 1};
    for (const char c : std::string("<|en")) ids.push_back(byte(c));
    return ids;
  }());
  CHECK(tokenizer->encode("<unused>").size() == 8);
  CHECK(tokenizer->encode("<|en|>", SpecialTokens::kPlainText).size() == 6);
  CHECK(tokenizer->decode({0, merged(1), 2}) == "<|end|>he<|end|>ing");
  CHECK(tokenizer->piece(merged(4)) == " he");
  CHECK_THROWS_AS(tokenizer->piece(-1), InvariantError);
  CHECK_THROWS_AS(tokenizer->decode({static_cast<TokenId>(tokenizer->vocab_size())}), InvariantError);
}

TEST_CASE("bpe: whole words go before merges where the model says so", "[text][bpe]") {
  BpeVocabulary vocabulary = small_vocabulary({{"a", "b"}, {"b", "c"}}, "llama-bpe");
  vocabulary.pieces.push_back("abc");
  vocabulary.token_types.push_back(1);
  const auto llama = make_bpe_tokenizer(vocabulary, "m.gguf");
  CHECK(llama->encode("abc") == TokenIds{kFirstByte + 258});
  vocabulary.pretokenizer = "qwen2";
  CHECK(make_bpe_tokenizer(vocabulary, "m.gguf")->encode("abc") == TokenIds{merged(0), byte('c')});
}

TEST_CASE("bpe: any bytes come back from their tokens", "[text][bpe]") {
  const std::string pretokenizer = GENERATE("gpt-2", "llama-bpe", "qwen2", "smollm");
  const auto tokenizer = make_bpe_tokenizer(small_vocabulary(kMerges, pretokenizer), "m.gguf");
  fathom::RngStream stream(fathom::RngKey("bpe round trip"));
  const std::vector<std::string> parts{"hello",   " ",    "\n",   "是",     "😀",    "e\u0301", "12",
                                       "<|end|>", "\t\t", "\r\n", "\u00A0", "it's", "…"};
  for (int round = 0; round < 300; ++round) {
    std::string text;
    const auto size = stream.uniform_index(40);
    for (std::uint64_t i = 0; i < size; ++i) {
      if (stream.uniform_index(2) == 0) {
        text += parts[stream.uniform_index(parts.size())];
      } else {
        text += static_cast<char>(stream.uniform_index(256));
      }
    }
    const TokenIds ids = tokenizer->encode(text);
    REQUIRE(tokenizer->decode(ids) == text);
    REQUIRE(tokenizer->decode(tokenizer->encode(text, SpecialTokens::kPlainText)) == text);
    const auto ends = tokenizer->token_end_offsets(text, ids);
    REQUIRE(ends.size() == ids.size());
    if (!text.empty()) REQUIRE(ends.back() == text.size());
  }
}

TEST_CASE("bpe: token ends are byte offsets", "[text][bpe]") {
  const auto tokenizer = make_bpe_tokenizer(small_vocabulary(kMerges), "m.gguf");
  CHECK(tokenizer->token_end_offsets("hel 是", tokenizer->encode("hel 是")) == std::vector<std::size_t>{2, 3, 4, 7});
  CHECK_THROWS_AS(tokenizer->token_end_offsets("hello", tokenizer->encode("hell")), InvariantError);
}

TEST_CASE("bpe: byte tokens stand in for missing letters", "[text][bpe]") {
  BpeVocabulary vocabulary;
  vocabulary.pieces = {"a", "<0x62>", "<0xC3>", "Ġ"};
  vocabulary.token_types = {1, 6, 6, 1};
  vocabulary.pretokenizer = "gpt-2";
  const auto tokenizer = make_bpe_tokenizer(vocabulary, "m.gguf");
  CHECK(tokenizer->encode("ab a") == TokenIds{0, 1, 3, 0});
  CHECK(tokenizer->decode({1, 2}) == "b\xC3");
  try {
    tokenizer->encode("ab c");
    FAIL("nothing was thrown");
  } catch (const DataError& error) {
    CHECK(std::string(error.what()) == "byte 0x63 of the text ' c' has no token in this model's vocabulary");
  }
}

TEST_CASE("bpe: a damaged vocabulary is an error that names the file", "[text][bpe][errors]") {
  const BpeVocabulary good = small_vocabulary(kMerges);
  BpeVocabulary bad = good;
  CHECK(error_of(bad) == "no error");
  bad.token_types.pop_back();
  CHECK(error_of(bad) == "m.gguf: 268 token types for 269 tokens");
  bad = good;
  bad.merges[1] = "h q";
  CHECK(error_of(bad) == "m.gguf: merge 1 'h q' names a piece that is no token");
  bad.merges[1] = "he";
  CHECK(error_of(bad) == "m.gguf: merge 1 is 'he', not two pieces with a blank between");
  bad = good;
  bad.eos = 269;
  CHECK(error_of(bad) == "m.gguf: EOS token 269 is outside 0..268");
  bad = good;
  bad.bos.reset();
  bad.add_bos = true;
  CHECK(error_of(bad) == "m.gguf: BOS is to be added, but no BOS token is named");
  bad = good;
  bad.token_types[10] = 6;
  CHECK(error_of(bad).find("m.gguf: byte token 10 is spelled") == 0);
  bad = good;
  bad.pretokenizer = "";
  CHECK(error_of(bad).find("m.gguf: pre-tokenizer '' is unknown; known: chatglm-bpe, ") == 0);
  CHECK(error_of(BpeVocabulary{{}, {}, {}, "gpt-2", {}, {}, false}) == "m.gguf: the tokenizer has no tokens");
}

TEST_CASE("bpe: the fingerprint follows everything that shapes the ids", "[text][bpe]") {
  const BpeVocabulary good = small_vocabulary(kMerges);
  const auto print = [](const BpeVocabulary& vocabulary) { return make_bpe_tokenizer(vocabulary, "x")->fingerprint(); };
  CHECK(make_bpe_tokenizer(good, "elsewhere")->fingerprint() == print(good));
  BpeVocabulary other = good;
  std::swap(other.merges[0], other.merges[1]);
  CHECK(print(other) != print(good));
  other = good;
  other.pretokenizer = "smollm";
  CHECK(print(other) != print(good));
  other = good;
  other.token_types[1] = 1;
  CHECK(print(other) != print(good));
  other = good;
  other.add_bos = true;
  CHECK(print(other) != print(good));
}

TEST_CASE("bpe: one unbroken word of a megabyte stays fast", "[text][bpe]") {
  const auto tokenizer = make_bpe_tokenizer(small_vocabulary(kMerges), "m.gguf");
  const std::string text(1 << 20, 'o');
  const auto start = std::chrono::steady_clock::now();
  CHECK(tokenizer->encode(text).size() == text.size() / 4);
  CHECK(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < 10.0);
}

TEST_CASE("bpe: SmolLM2's ids equal the reference in every case", "[text][bpe][shared]") {
  FATHOM_NEEDS_SHARED("fixtures/real/parity_smollm2.json");
  if (fathom::test::model_missing(kSmolFile)) return;
  const auto root =
      nlohmann::json::parse(std::ifstream(fathom::test::shared_path("fixtures/real/parity_smollm2.json")));
  const Tokenizer& tokenizer = smol_tokenizer();
  CHECK(tokenizer.vocab_size() == 49152);
  CHECK_FALSE(tokenizer.adds_bos());
  const auto& cases = root.at("tokenizer").at("cases");
  CHECK(cases.size() == 23);
  for (const auto& each : cases) {
    const auto text = each.at("text").get<std::string>();
    INFO(text);
    const TokenIds ids = tokenizer.encode(text);
    CHECK(ids == each.at("ids").get<TokenIds>());
    CHECK(tokenizer.decode(ids) == text);
    if (each.contains("ids_specials_as_text_llama_cpp")) {
      CHECK(tokenizer.encode(text, SpecialTokens::kPlainText) ==
            each.at("ids_specials_as_text_llama_cpp").get<TokenIds>());
    }
  }
  CHECK(tokenizer.encode(read_file(fathom::test::shared_path("fixtures/real/text.txt"))) ==
        root.at("input_ids").get<TokenIds>());
}

TEST_CASE("bpe: SmolLM2's conversations give the reference's ids", "[text][bpe][chat_template][shared]") {
  FATHOM_NEEDS_SHARED("fixtures/real/chat_smollm2.json");
  if (fathom::test::model_missing(kSmolFile)) return;
  const auto root = nlohmann::json::parse(std::ifstream(fathom::test::shared_path("fixtures/real/chat_smollm2.json")));
  const auto family = detect_chat_template(root.at("chat_template").get<std::string>());
  REQUIRE(family);
  const PromptAssembler assembler(smol_tokenizer(), PromptStyle::kChat, family);
  for (const auto& each : root.at("cases")) {
    std::vector<ChatMessage> messages;
    for (const auto& message : each.at("messages")) messages.push_back({message.at("role"), message.at("content")});
    CHECK(smol_tokenizer().encode(render_chat(*family, messages, GenerationPrompt::kAdd)) ==
          each.at("ids").get<TokenIds>());
    if (messages.size() > 2) continue;
    const std::string system = messages.size() == 2 ? messages.front().content : "";
    const auto out = assembler.assemble(system, messages.back().content, "");
    CHECK(out.ids == each.at("ids").get<TokenIds>());
    CHECK(out.text.substr(out.task_offset, messages.back().content.size()) == messages.back().content);
  }
  CHECK(assembler.stop_ids() == std::vector<TokenId>{2});
}

TEST_CASE("bpe: a megabyte of prose takes well under a second, on several threads alike", "[text][bpe][shared]") {
  if (fathom::test::model_missing(kSmolFile)) return;
  const ProseGenerator prose("en", 3);
  std::string text;
  for (std::uint64_t i = 0; text.size() < (1U << 20U); ++i) {
    const ProseSentence sentence = prose.sentence(i);
    text += sentence.separator + sentence.text;
  }
  const Tokenizer& tokenizer = smol_tokenizer();
  const auto start = std::chrono::steady_clock::now();
  const TokenIds ids = tokenizer.encode(text);
  const double elapsed_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  INFO("1 MB in " << elapsed_seconds << " s");
  CHECK(elapsed_seconds < 5.0);  // 0.1 s when nothing else runs
  CHECK(tokenizer.decode(ids) == text);
  std::vector<TokenIds> results(3);
  std::vector<std::thread> threads;
  for (TokenIds& result : results) threads.emplace_back([&] { result = tokenizer.encode(text); });
  for (std::thread& thread : threads) thread.join();
  for (const TokenIds& result : results) CHECK(result == ids);
}
