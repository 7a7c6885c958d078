#include "harness/text/tokenizer_json.h"

#include <nlohmann/json.hpp>
#include <string>

#include "harness/core/error.h"
#include "tests/support/catch.h"

namespace fathom::text {
namespace {

using Json = nlohmann::json;

/// Characters a and b, their merge, and two added tokens.
Json small_json() {
  return Json::parse(R"({
    "added_tokens": [{"id": 4, "content": "<s>", "special": true}, {"id": 5, "content": "</s>", "special": true}],
    "normalizer": null, "pre_tokenizer": null, "post_processor": null,
    "model": {"type": "BPE", "vocab": {"<unk>": 0, "a": 1, "b": 2, "ab": 3}, "merges": ["a b"], "unk_token": "<unk>"}
  })");
}

std::unique_ptr<Tokenizer> read(const Json& json, const SpecialTokenPolicy& policy = {}) {
  return read_tokenizer_json(json.dump(), policy, "t.json");
}

std::string error_of(const std::string& text) {
  try {
    read_tokenizer_json(text, {}, "t.json");
  } catch (const DataError& error) {
    return error.what();
  }
  return "no DataError";
}

TEST_CASE("tokenizer.json: merges are texts or pairs", "[text][tokenizer_json]") {
  Json json = small_json();
  CHECK(read(json)->encode("aab<s>b") == TokenIds{1, 3, 4, 2});
  json["model"]["merges"] = Json::array({Json::array({"a", "b"})});
  CHECK(read(json)->encode("aab") == TokenIds{1, 3});
  CHECK(read(json)->vocab_size() == 6);
  CHECK(read(json)->piece(5) == "</s>");
}

TEST_CASE("tokenizer.json: BOS and EOS are those of the files beside it", "[text][tokenizer_json]") {
  SpecialTokenPolicy policy;
  CHECK_FALSE(read(small_json())->bos().has_value());
  policy.bos = "<s>";
  policy.eos_id = 5;
  CHECK(read(small_json(), policy)->bos() == 4);
  CHECK(read(small_json(), policy)->eos() == 5);
  CHECK_FALSE(read(small_json(), policy)->adds_bos());
  policy.add_bos = true;
  CHECK(read(small_json(), policy)->adds_bos());
  SECTION("a post-processor says more than a flag") {
    Json json = small_json();
    json["post_processor"] = Json::parse(R"({"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A"}}],
                                             "special_tokens": {}})");
    CHECK_FALSE(read(json, policy)->adds_bos());
    policy.flags_win = true;
    CHECK(read(json, policy)->adds_bos());
  }
  SECTION("a token that is not there") {
    policy.bos = "<bos>";
    CHECK_THROWS_AS(read(small_json(), policy), DataError);
  }
}

TEST_CASE("tokenizer.json: what it does not honour it refuses", "[text][tokenizer_json][errors]") {
  Json json = small_json();
  const auto changed = [&](const char* pointer, const Json& value) {
    json[Json::json_pointer(pointer)] = value;
    return error_of(json.dump());
  };
  SECTION("model type") {
    CHECK(changed("/model/type", "WordPiece") ==
          "t.json: model type 'WordPiece' is not supported; supported: BPE, Unigram");
  }
  SECTION("dropout") {
    CHECK(changed("/model/dropout", 0.1) == "t.json: model.dropout = 0.1 is not supported");
  }
  SECTION("suffix") {
    CHECK(changed("/model/end_of_word_suffix", "</w>") ==
          "t.json: model.end_of_word_suffix = \"</w>\" is not supported");
  }
  SECTION("normalizer") {
    CHECK(changed("/normalizer", {{"type", "Lowercase"}}).find("normalizer 'Lowercase' is not supported") !=
          std::string::npos);
  }
  SECTION("pre-tokenizer") {
    CHECK(changed("/pre_tokenizer", {{"type", "Whitespace"}}).find("pre_tokenizer 'Whitespace' is not supported") !=
          std::string::npos);
  }
  SECTION("pattern") {
    const Json split = {{"type", "Split"}, {"pattern", {{"Regex", "(a"}}}, {"behavior", "Isolated"}};
    CHECK(changed("/pre_tokenizer", split).find("t.json: pre-tokenizer pattern '(a': missing closing parenthesis") ==
          0);
  }
  SECTION("post-processor") {
    CHECK(changed("/post_processor", {{"type", "Odd"}}).find("post_processor 'Odd' is not supported") !=
          std::string::npos);
  }
  SECTION("several tokens in front") {
    const Json both = Json::parse(R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}},
      {"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}], "special_tokens": {"<s>": {"ids": [4]}}})");
    CHECK(changed("/post_processor", both) ==
          "t.json: post_processor puts several special tokens in front of a sequence; one is supported");
  }
  SECTION("a merge of no token") {
    CHECK(changed("/model/merges", Json::array({"a c"})) == "t.json: merge 0 'a c' names 'c', which is no token");
  }
  SECTION("a merge into no token") {
    CHECK(changed("/model/merges", Json::array({"b a"})) == "t.json: merge 0 'b a' names 'ba', which is no token");
  }
  SECTION("an id that asks for gigabytes") {
    CHECK(changed("/model/vocab/a", 2000000000).find("t.json: token 'a' has id 2000000000; allowed are 0 to") == 0);
  }
  SECTION("a negative id") {
    CHECK(changed("/added_tokens/0/id", -1).find("added token '<s>' has id -1") != std::string::npos);
  }
}

TEST_CASE("tokenizer.json: damaged JSON is an error of the file", "[text][tokenizer_json][errors]") {
  CHECK(error_of("").find("t.json: not a tokenizer: ") == 0);
  CHECK(error_of("[]") == "t.json: it is no JSON object");
  CHECK(error_of("{}").find("t.json: not a tokenizer: ") == 0);
  CHECK(error_of(R"({"model": 1})") == "t.json: model is no object");
  CHECK(error_of(std::string(100000, '[')).find("t.json: its JSON is nested deeper than 32 levels") == 0);
  CHECK(error_of(R"({"model": {"vocab": {"a": "b"}, "merges": []}})").find("token 'a' has id \"b\"") !=
        std::string::npos);
}

}  // namespace
}  // namespace fathom::text
