// Tokenizers trained and run by the reference libraries, against ours.

#include <memory>
#include <string>

#include "harness/text/pretokenizer.h"
#include "harness/text/sentencepiece_tokenizer.h"
#include "harness/text/tokenizer_json.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

namespace fathom::text {
namespace {

std::string from_base64(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned value = 0, n_bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    value = (value << 6U) | static_cast<unsigned>(digits.find(c));
    n_bits += 6;
    if (n_bits < 8) continue;
    n_bits -= 8;
    bytes += static_cast<char>((value >> n_bits) & 0xFFU);
  }
  return bytes;
}

std::string to_hex(std::string_view bytes) {
  std::string hex;
  for (const char c : bytes) {
    hex += "0123456789abcdef"[static_cast<unsigned char>(c) >> 4U];
    hex += "0123456789abcdef"[static_cast<unsigned char>(c) & 15U];
  }
  return hex;
}

std::unique_ptr<Tokenizer> golden_tokenizer(const nlohmann::json& entry) {
  const std::string name = entry["name"];
  if (entry["kind"] == "json") return read_tokenizer_json(entry["json"].get<std::string>(), {}, name);
  return make_sentencepiece_tokenizer(read_sentencepiece_model(from_base64(entry["model_base64"]), name), name);
}

TEST_CASE("tokenizers: ids equal those of sentencepiece and tokenizers", "[text][tokenizers][golden]") {
  const nlohmann::json golden = test::read_golden("tokenizers.json");
  int run = 0;
  for (const nlohmann::json& entry : golden["tokenizers"]) {
    INFO("tokenizer " << entry["name"].get<std::string>());
    const auto tokenizer = golden_tokenizer(entry);
    const SpecialTokens specials = entry["specials"] == "plain" ? SpecialTokens::kPlainText : SpecialTokens::kParse;
    for (const nlohmann::json& example : entry["cases"]) {
      const std::string text = example["text"];
      INFO("text '" << text << "'");
      CHECK(tokenizer->encode(text, specials) == example["ids"].get<TokenIds>());
      ++run;
    }
  }
  CHECK(run > 600);
}

TEST_CASE("pretokenizer: words equal those of tokenizers", "[text][pretokenizer][golden]") {
  const nlohmann::json golden = test::read_golden("tokenizers.json");
  int run = 0;
  for (const auto& [name, cases] : golden["pretokenizers"].items()) {
    INFO("pre-tokenizer " << name);
    const Pretokenizer pretokenizer(name, "test");
    for (const nlohmann::json& example : cases) {
      const std::string text = example[0];
      INFO("text '" << text << "'");
      std::vector<std::string> words;
      for (const std::string_view word : pretokenizer.split(text)) words.push_back(to_hex(word));
      CHECK(words == example[1].get<std::vector<std::string>>());
      ++run;
    }
  }
  CHECK(run > 300);
}

TEST_CASE("tokenizers: the frame of a sequence is the post-processor's", "[text][tokenizers][golden]") {
  const nlohmann::json golden = test::read_golden("tokenizers.json");
  int n_bos = 0, n_eos = 0;
  for (const nlohmann::json& entry : golden["tokenizers"]) {
    if (!entry.contains("with_frame_of_a")) continue;
    INFO("tokenizer " << entry["name"].get<std::string>());
    const auto tokenizer = golden_tokenizer(entry);
    TokenIds ids = tokenizer->encode("a");
    if (tokenizer->adds_bos()) {
      ids.insert(ids.begin(), tokenizer->bos().value());
      ++n_bos;
    }
    if (tokenizer->adds_eos()) {
      ids.push_back(tokenizer->eos().value());
      ++n_eos;
    }
    CHECK(ids == entry["with_frame_of_a"].get<TokenIds>());
  }
  CHECK(n_bos == 2);
  CHECK(n_eos == 1);
}

TEST_CASE("tokenizers: offsets never fall and end with the text where nothing is removed",
          "[text][tokenizers][golden]") {
  const nlohmann::json golden = test::read_golden("tokenizers.json");
  for (const nlohmann::json& entry : golden["tokenizers"]) {
    const std::string name = entry["name"];
    INFO("tokenizer " << name);
    const auto tokenizer = golden_tokenizer(entry);
    const bool removes = name == "strips" || name == "t5_unigram" || name == "spm_unigram" || name == "spm_bpe_unknown";
    for (const nlohmann::json& example : entry["cases"]) {
      const std::string text = example["text"];
      INFO("text '" << text << "'");
      const TokenIds ids = tokenizer->encode(text);
      const std::vector<std::size_t> ends = tokenizer->token_end_offsets(text, ids);
      REQUIRE(ends.size() == ids.size());
      for (std::size_t i = 1; i < ends.size(); ++i) CHECK(ends[i - 1] <= ends[i]);
      if (!removes && !ids.empty()) CHECK(ends.back() == text.size());
    }
  }
}

TEST_CASE("tokenizers: what has a token, or bytes, comes back unchanged", "[text][tokenizers][golden]") {
  const nlohmann::json golden = test::read_golden("tokenizers.json");
  for (const nlohmann::json& entry : golden["tokenizers"]) {
    const std::string name = entry["name"];
    if (name != "gpt2" && name != "smollm" && name != "llama3" && name != "llama2" && name != "gemma" &&
        name != "falcon" && name != "spm_bpe" && name != "spm_unigram_bytes") {
      continue;  // the others change, remove or do not know parts of these texts
    }
    INFO("tokenizer " << name);
    const auto tokenizer = golden_tokenizer(entry);
    for (const nlohmann::json& example : entry["cases"]) {
      const std::string text = example["text"];
      if (text.find("\xE2\x96\x81") != std::string::npos) continue;  // "▁" is how a blank is spelled
      INFO("text '" << text << "'");
      CHECK(tokenizer->decode(tokenizer->encode(text)) == text);
    }
  }
}

TEST_CASE("tokenizers: bytes that are no UTF-8 do no harm", "[text][tokenizers][golden]") {
  const nlohmann::json golden = test::read_golden("tokenizers.json");
  const std::string text = "ab\xFF\xE6\x98 cd\xC3";
  for (const nlohmann::json& entry : golden["tokenizers"]) {
    INFO("tokenizer " << entry["name"].get<std::string>());
    const auto tokenizer = golden_tokenizer(entry);
    const TokenIds ids = tokenizer->encode(text);
    CHECK(tokenizer->token_end_offsets(text, ids).size() == ids.size());
  }
}

}  // namespace
}  // namespace fathom::text
