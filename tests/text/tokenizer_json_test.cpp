#include "harness/text/tokenizer_json.h"

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

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
  SECTION("a token of the vocabulary alone, which is then looked for in the text") {
    policy.bos = "ab";
    const auto tokenizer = read(small_json(), policy);
    CHECK(tokenizer->bos() == 3);
    CHECK(tokenizer->encode("ab", SpecialTokens::kParse) == TokenIds{3});
    CHECK(tokenizer->encode("bab") == TokenIds{2, 3});
  }
  SECTION("a token that only the files beside it add") {
    policy.added = {{6, "<end>", true, false, false, false, false}};
    policy.eos = "<end>";
    const auto tokenizer = read(small_json(), policy);
    CHECK(tokenizer->eos() == 6);
    CHECK(tokenizer->vocab_size() == 7);
    CHECK(tokenizer->encode("a<end>") == TokenIds{1, 6});
  }
  SECTION("flags of the files beside it count") {
    policy.added = {{4, "<s>", true, true, false, false, false}};
    CHECK(read(small_json(), policy)->encode("a  <s>") == TokenIds{1, 4});
  }
}

/// Pieces of one character; unknown is 0.
Json letters_json(std::initializer_list<const char*> letters) {
  Json json = small_json();
  json["model"]["vocab"] = {{"<unk>", 0}};
  json["model"]["merges"] = Json::array();
  int id = 0;
  for (const char* letter : letters) json["model"]["vocab"][letter] = ++id;
  json["added_tokens"] = Json::array();
  return json;
}

void add_token(Json& json, int id, const std::string& content, const std::string& flag = "") {
  Json token = {{"id", id}, {"content", content}, {"special", false}, {"normalized", false}};
  if (!flag.empty()) token[flag] = true;
  json["added_tokens"].push_back(token);
}

// Ids of the cases below are those of tokenizers 0.23.3.
TEST_CASE("tokenizer.json: a text of which nothing is left gives no tokens", "[text][tokenizer_json]") {
  Json json = letters_json({"a", "b"});
  json["normalizer"] = {{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}};
  CHECK(read(json)->encode(" ").empty());
  CHECK(read(json)->encode(" a ") == TokenIds{1});
  json["normalizer"] = {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", ""}};
  add_token(json, 3, "<s>");
  CHECK(read(json)->encode("b<s>a<s>b") == TokenIds{2, 3, 3, 2});
  CHECK(read(json)->token_end_offsets("b<s>a<s>b", {2, 3, 3, 2}) == std::vector<std::size_t>{1, 4, 8, 9});
}

TEST_CASE("tokenizer.json: added tokens take white space of all kinds, and leave the tokens in it",
          "[text][tokenizer_json]") {
  Json json = letters_json({"a", "b", " ", "\n"});
  add_token(json, 5, "<s>", "rstrip");
  add_token(json, 6, "\n\n");
  add_token(json, 7, "<x>", "lstrip");
  const auto tokenizer = read(json);
  CHECK(tokenizer->encode("<s>\n\n") == TokenIds{5, 6});
  CHECK(tokenizer->encode("<s>\n\n\n") == TokenIds{5, 6, 4});
  CHECK(tokenizer->encode("<s>\u3000\u00A0a") == TokenIds{5, 1});
  CHECK(tokenizer->encode("a\u0085 <x>") == TokenIds{1, 7});
  CHECK(tokenizer->token_end_offsets("<s>\n\n\n", {5, 6, 4}) == std::vector<std::size_t>{6, 6, 6});
}

TEST_CASE("tokenizer.json: a token that is a word by itself has no character of words beside it",
          "[text][tokenizer_json]") {
  Json json = letters_json({"a", "b", "-", "\u00E9", "\u0301", "\u2014"});
  add_token(json, 7, "ba");
  add_token(json, 8, "aba", "single_word");
  add_token(json, 9, "--", "single_word");
  const auto tokenizer = read(json);
  CHECK(tokenizer->encode("-aba-") == TokenIds{3, 8, 3});
  CHECK(tokenizer->encode("-abab") == TokenIds{3, 1, 2, 1, 2});  // the search goes on behind what was found
  CHECK(tokenizer->encode("\u2014aba") == TokenIds{6, 8});
  CHECK(tokenizer->encode("aba\u0301") == TokenIds{1, 2, 1, 5});
  CHECK(tokenizer->encode("\u00E9--") == TokenIds{4, 3, 3});
}

TEST_CASE("tokenizer.json: some added tokens are looked for in normalised text", "[text][tokenizer_json]") {
  Json json = letters_json({"a", "b", "\u2581"});
  json["normalizer"] = Json::parse(R"({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"},
    {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]})");
  add_token(json, 4, "<s>");
  add_token(json, 5, "ab", "normalized");
  add_token(json, 6, "b b", "normalized");
  const auto tokenizer = read(json);
  CHECK(tokenizer->encode("ab") == TokenIds{5});
  CHECK(tokenizer->encode("aab") == TokenIds{3, 1, 1, 2});
  CHECK(tokenizer->encode("a ab") == TokenIds{3, 1, 5});
  CHECK(tokenizer->encode("<s>ab") == TokenIds{4, 5});
  CHECK(tokenizer->encode("ab<s>b") == TokenIds{5, 4, 3, 2});
  CHECK(tokenizer->encode("a b b b") == TokenIds{3, 1, 6, 3, 2});
  CHECK(tokenizer->token_end_offsets("a b b b", {3, 1, 6, 3, 2}) == std::vector<std::size_t>{0, 1, 5, 6, 7});
  Json composed = letters_json({"a", "e", "\u00E9"});
  composed["normalizer"] = {{"type", "NFC"}};
  add_token(composed, 4, "ae\u0301", "normalized");
  add_token(composed, 5, "e\u0301");
  CHECK(read(composed)->encode("a\u00E9e\u0301") == TokenIds{4, 5});
  CHECK(read(composed)->encode("ae\u0301") == TokenIds{1, 5});  // what is looked for in the text itself comes first
}

TEST_CASE("tokenizer.json: the model's own id of an added token counts", "[text][tokenizer_json]") {
  Json json = letters_json({"a", "b"});
  add_token(json, 77, "b");
  CHECK(read(json)->encode("ab") == TokenIds{1, 2});
}

Json unigram_json(const Json& vocabulary) {
  Json json = small_json();
  json["model"] = {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocabulary}, {"byte_fallback", true}};
  json["added_tokens"] = Json::array();
  return json;
}

TEST_CASE("tokenizer.json: a unigram model adds in double, and finds byte tokens by their spelling",
          "[text][tokenizer_json]") {
  const auto near = read(unigram_json(
      Json::parse(R"([["<unk>", 0], ["a", -8.1], ["aa", -16.200000001], ["b", -8.1], ["bb", -16.1999999999]])")));
  CHECK(near->encode("aa") == TokenIds{1, 1});
  CHECK(near->encode("bb") == TokenIds{4});
  const auto bytes =
      read(unigram_json(Json::parse(R"([["<unk>", 0], ["<0x41>", -1], ["a", -1], ["aa", -2], ["aaa", -3]])")));
  CHECK(bytes->encode("a<0x41>aaa") == TokenIds{2, 1, 4});
}

TEST_CASE("tokenizer.json: the version line of a merges.txt is no merge", "[text][tokenizer_json]") {
  Json json = small_json();
  json["model"]["merges"] = Json::array({"#version: 0.2", "a b"});
  CHECK(read(json)->encode("ab") == TokenIds{3});
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
