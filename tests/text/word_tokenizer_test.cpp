#include "harness/text/word_tokenizer.h"

#include <cstddef>
#include <string>
#include <vector>

#include "harness/core/error.h"
#include "tests/support/catch.h"

using fathom::ConfigError;
using fathom::DataError;
using fathom::InvariantError;
using fathom::TokenIds;
using fathom::text::SpecialTokens;
using fathom::text::VocabularySpec;
using fathom::text::WordTokenizer;

namespace {

template <typename Error, typename Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  FAIL("nothing of the expected type was thrown");
  return {};
}

}  // namespace

TEST_CASE("word tokenizer: ids are specials, stop word, markers, then the pools in order", "[text][word_tokenizer]") {
  const WordTokenizer tokenizer(VocabularySpec{}, false);
  CHECK(tokenizer.piece(0) == "<pad>");
  CHECK(tokenizer.piece(1) == "<bos>");
  CHECK(tokenizer.piece(2) == "<eos>");
  CHECK(tokenizer.id(".") == 3);
  CHECK(tokenizer.id("note") == 4);
  CHECK(tokenizer.id("ask") == 5);
  CHECK(tokenizer.id("most") == 19);
  CHECK(tokenizer.id("copy") == 20);
  CHECK(tokenizer.id(";") == 42);
  CHECK(tokenizer.id("k0") == 43);
  CHECK(tokenizer.pool_begin('k') == 43);
  CHECK(tokenizer.pool_begin('v') == 243);
  CHECK(tokenizer.id("v199") == 442);
  CHECK(tokenizer.pool_begin('f') == 443);
  CHECK(tokenizer.pool_begin('e') == 643);
  CHECK(tokenizer.pool_size('e') == 100);
  CHECK(tokenizer.pool_size('c') == 0);
  CHECK(tokenizer.vocab_size() == 743);
  CHECK(tokenizer.bos() == 1);
  CHECK(tokenizer.eos() == 2);
  CHECK_FALSE(tokenizer.adds_bos());
  CHECK(tokenizer.closed_vocabulary());
  CHECK_THROWS_AS(tokenizer.pool_begin('z'), InvariantError);
}

TEST_CASE("word tokenizer: blanks and line ends separate words, decode joins by one blank", "[text][word_tokenizer]") {
  const WordTokenizer tokenizer(VocabularySpec{}, true);
  const std::string text = " note  k3 v17\n.\task k3\r\n";
  const TokenIds ids = tokenizer.encode(text);
  CHECK(ids == TokenIds{4, 46, 260, 3, 5, 46});
  CHECK(tokenizer.decode(ids) == "note k3 v17 . ask k3");
  CHECK(tokenizer.encode(tokenizer.decode(ids)) == ids);
  CHECK(tokenizer.encode("").empty());
  CHECK(tokenizer.adds_bos());
}

TEST_CASE("word tokenizer: token ends are the ends of the words", "[text][word_tokenizer]") {
  const WordTokenizer tokenizer(VocabularySpec{}, false);
  const std::string text = "note  k3\nv17 .";
  CHECK(tokenizer.token_end_offsets(text, tokenizer.encode(text)) == std::vector<std::size_t>{4, 8, 12, 14});
  CHECK_THROWS_AS(tokenizer.token_end_offsets(text, tokenizer.encode("note k3 v17")), InvariantError);
  CHECK_THROWS_AS(tokenizer.token_end_offsets(text, tokenizer.encode("note k3 v18 .")), InvariantError);
}

TEST_CASE("word tokenizer: special tokens are words, unless plain text is asked for", "[text][word_tokenizer]") {
  const WordTokenizer tokenizer(VocabularySpec{}, false);
  CHECK(tokenizer.encode("<bos> k0 <eos>") == TokenIds{1, 43, 2});
  const std::string message = message_of<DataError>([&] { tokenizer.encode("k0 <eos>", SpecialTokens::kPlainText); });
  CHECK(message == "word '<eos>' is a special token and cannot be plain text in the closed vocabulary");
}

TEST_CASE("word tokenizer: a word outside the vocabulary is an error that names it", "[text][word_tokenizer][errors]") {
  const WordTokenizer tokenizer(VocabularySpec{}, false);
  CHECK(message_of<DataError>([&] { tokenizer.encode("note k200"); }) ==
        "word 'k200' is not in the closed vocabulary of 743 words");
  CHECK_THROWS_AS(tokenizer.encode("5"), DataError);
  CHECK_THROWS_AS(tokenizer.piece(743), InvariantError);
  CHECK_THROWS_AS(tokenizer.piece(-1), InvariantError);
  VocabularySpec spec;
  spec.n_values = -1;
  CHECK(message_of<ConfigError>([&] { WordTokenizer(spec, false); }) ==
        "vocabulary: values = -1 is outside 0..1000000");
  spec.n_values = 1;
  spec.n_digits = 11;
  CHECK(message_of<ConfigError>([&] { WordTokenizer(spec, false); }) == "vocabulary: digits = 11 is outside 0..10");
}

TEST_CASE("word tokenizer: extra pools stand behind the default ones", "[text][word_tokenizer]") {
  VocabularySpec spec{10, 20, 30, 5};
  spec.n_cues = 3;
  spec.n_targets = 4;
  spec.n_digits = 10;
  const WordTokenizer tokenizer(spec, false);
  CHECK(tokenizer.pool_begin('c') == 43 + 65);
  CHECK(tokenizer.pool_begin('t') == 43 + 68);
  CHECK(tokenizer.id("0") == 43 + 72);
  CHECK(tokenizer.piece(tokenizer.pool_begin('d') + 9) == "9");
  CHECK(tokenizer.vocab_size() == 43 + 82);
}

TEST_CASE("word tokenizer: tokenizer.json reads back as the same tokenizer", "[text][word_tokenizer]") {
  const WordTokenizer tokenizer(VocabularySpec{7, 8, 9, 10}, true);
  const auto back = WordTokenizer::from_json(tokenizer.to_json(), "tokenizer.json");
  CHECK(back->to_json() == tokenizer.to_json());
  CHECK(back->fingerprint() == tokenizer.fingerprint());
  CHECK(back->adds_bos());
  CHECK(back->spec().n_fillers == 9);
  CHECK(back->encode("note e9") == tokenizer.encode("note e9"));
  CHECK(WordTokenizer(VocabularySpec{7, 8, 9, 10}, false).fingerprint() != tokenizer.fingerprint());
  CHECK(WordTokenizer(VocabularySpec{8, 8, 9, 10}, true).fingerprint() != tokenizer.fingerprint());
}

TEST_CASE("word tokenizer: a damaged tokenizer.json is an error that names the file",
          "[text][word_tokenizer][errors]") {
  const auto read = [](const std::string& json) {
    return message_of<DataError>([&] { WordTokenizer::from_json(json, "m/tokenizer.json"); });
  };
  std::string json = WordTokenizer(VocabularySpec{2, 2, 2, 2}, false).to_json();
  CHECK(read("{").find("m/tokenizer.json: not a word tokenizer: ") == 0);
  CHECK(read("{\"type\": \"BPE\"}") == "m/tokenizer.json: tokenizer type 'BPE' is not 'fathom_words'");
  const auto replaced = [&json](const std::string& from, const std::string& to) {
    std::string out = json;
    const auto at = out.find(from);
    REQUIRE(at != std::string::npos);
    return out.replace(at, from.size(), to);
  };
  CHECK(read(replaced("\"version\": 1", "\"version\": 2")) ==
        "m/tokenizer.json: tokenizer version 2 is unknown; this build reads 1");
  CHECK(read(replaced("\"k1\"", "\"kk\"")) ==
        "m/tokenizer.json: the word list (51 words) is not the one its pool sizes make (51 words)");
  CHECK(read(replaced("\"keys\": 2", "\"keys\": -3")) ==
        "m/tokenizer.json: vocabulary: keys = -3 is outside 0..1000000");
  CHECK(read(replaced("\"keys\": 2", "\"keys\": \"two\"")).find("m/tokenizer.json: not a word tokenizer: ") == 0);
}
