#include "harness/text/sentencepiece_tokenizer.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "harness/core/error.h"
#include "tests/support/catch.h"

namespace fathom::text {
namespace {

constexpr const char* kMark = "\xE2\x96\x81";

struct Piece {
  std::string text;
  float score;
  std::int32_t type;
};

SentencePieceVocabulary vocabulary_of(SentencePieceVocabulary::Kind kind, const std::vector<Piece>& pieces) {
  SentencePieceVocabulary out;
  out.kind = kind;
  for (const Piece& piece : pieces) {
    out.pieces.push_back(piece.text);
    out.scores.push_back(piece.score);
    out.types.push_back(piece.type);
  }
  return out;
}

std::unique_ptr<Tokenizer> bpe(const std::vector<Piece>& pieces) {
  return make_sentencepiece_tokenizer(vocabulary_of(SentencePieceVocabulary::Kind::kBpe, pieces), "test");
}

std::unique_ptr<Tokenizer> unigram(const std::vector<Piece>& pieces) {
  return make_sentencepiece_tokenizer(vocabulary_of(SentencePieceVocabulary::Kind::kUnigram, pieces), "test");
}

template <typename Action>
std::string data_error(Action action) {
  try {
    action();
  } catch (const DataError& error) {
    return error.what();
  }
  return "no DataError";
}

TEST_CASE("sentencepiece BPE: the best score is merged first, the leftmost of equals", "[text][sentencepiece]") {
  // 0 <unk>, 1 a, 2 b, 3 c, 4 ab (-2), 5 bc (-1), 6 aa (-3)
  const auto tokenizer =
      bpe({{"<unk>", 0, 2}, {"a", -9, 1}, {"b", -9, 1}, {"c", -9, 1}, {"ab", -2, 1}, {"bc", -1, 1}, {"aa", -3, 1}});
  CHECK(tokenizer->encode("abc") == TokenIds{1, 5});   // bc before ab
  CHECK(tokenizer->encode("aaa") == TokenIds{6, 1});   // the left pair
  CHECK(tokenizer->encode("aab") == TokenIds{1, 4});   // ab before aa
  CHECK(tokenizer->encode("xyab") == TokenIds{0, 4});  // unknown characters in a row are one token
}

TEST_CASE("sentencepiece BPE: a piece out of use is taken apart again", "[text][sentencepiece]") {
  // abc is reached through ab, which is no token by itself.
  const auto tokenizer =
      bpe({{"<unk>", 0, 2}, {"a", -9, 1}, {"b", -9, 1}, {"c", -9, 1}, {"ab", -1, 5}, {"abc", -2, 1}});
  CHECK(tokenizer->encode("abc") == TokenIds{5});
  CHECK(tokenizer->encode("ab") == TokenIds{1, 2});
}

TEST_CASE("sentencepiece BPE: a piece with a blank inside is found across words", "[text][sentencepiece]") {
  const std::string mark = kMark;
  const auto tokenizer = bpe({{"<unk>", 0, 2}, {"a", -9, 1}, {mark, -9, 1}, {"a" + mark, -1, 1}, {mark + "a", -2, 1}});
  CHECK(tokenizer->encode("a a") == TokenIds{3, 1});
  CHECK(tokenizer->encode(" a a") == TokenIds{2, 3, 1});
}

TEST_CASE("sentencepiece unigram: the largest sum of scores wins", "[text][sentencepiece]") {
  // a b | ab: -4 against -3.5; ab c | a bc: -3.5 - 2 = -5.5 against -2 - 3 = -5.
  const auto tokenizer =
      unigram({{"<unk>", 0, 2}, {"a", -2, 1}, {"b", -2, 1}, {"c", -2, 1}, {"ab", -3.5F, 1}, {"bc", -3, 1}});
  CHECK(tokenizer->encode("ab") == TokenIds{4});
  CHECK(tokenizer->encode("abc") == TokenIds{1, 5});
  CHECK(tokenizer->encode("axxb") == TokenIds{1, 0, 2});
  CHECK(tokenizer->encode("").empty());
}

TEST_CASE("sentencepiece: bytes stand for what has no piece", "[text][sentencepiece]") {
  std::vector<Piece> pieces{{"<unk>", 0, 2}, {"a", -1, 1}};
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof(text), "<0x%02X>", static_cast<unsigned>(byte));
    pieces.push_back({text, 0, 6});
  }
  for (const auto& tokenizer : {bpe(pieces), unigram(pieces)}) {
    const TokenIds ids = tokenizer->encode("aé");
    CHECK(ids == TokenIds{1, 2 + 0xC3, 2 + 0xA9});
    CHECK(tokenizer->decode(ids) == "aé");
    CHECK(tokenizer->piece(2 + 0xC3) == "\xC3");
    CHECK(tokenizer->token_end_offsets("aé", ids) == std::vector<std::size_t>{1, 2, 3});
  }
}

TEST_CASE("sentencepiece: control tokens are read only where asked, user-defined ones always",
          "[text][sentencepiece]") {
  const auto tokenizer = bpe({{"<unk>", 0, 2},
                              {"<s>", 0, 3},
                              {"ab", 0, 4},
                              {"a", -1, 1},
                              {"b", -1, 1},
                              {"<", -1, 1},
                              {"s", -1, 1},
                              {">", -1, 1}});
  CHECK(tokenizer->encode("<s>aab") == TokenIds{1, 3, 2});
  CHECK(tokenizer->encode("<s>aab", SpecialTokens::kPlainText) == TokenIds{5, 6, 7, 3, 2});
}

TEST_CASE("sentencepiece: user-defined pieces may be found late, the blank in front included",
          "[text][sentencepiece]") {
  const std::string mark = kMark;
  SentencePieceVocabulary vocabulary = vocabulary_of(
      SentencePieceVocabulary::Kind::kBpe, {{"<unk>", 0, 2}, {mark, -1, 1}, {"a", -1, 1}, {mark + mark, 0, 4}});
  vocabulary.blank_prefix = PrefixPlace::kTextAndAfterSpecial;
  CHECK(make_sentencepiece_tokenizer(vocabulary, "m")->encode("  a  a") == TokenIds{3, 2, 3, 2});
  vocabulary.finds_user_pieces_late = true;
  const auto late = make_sentencepiece_tokenizer(vocabulary, "m");
  CHECK(late->encode("  a  a") == TokenIds{3, 1, 2, 3, 2});
  CHECK(late->decode(late->encode("  a  a")) == "  a  a");
  CHECK(late->token_end_offsets(" a", late->encode(" a")) == std::vector<std::size_t>{1, 2});
}

// Ids of the two cases below are those of sentencepiece 0.2.3.
TEST_CASE("sentencepiece: user-defined pieces are shielded from what is done to blanks", "[text][sentencepiece]") {
  const std::string mark = kMark;
  for (const auto kind : {SentencePieceVocabulary::Kind::kUnigram, SentencePieceVocabulary::Kind::kBpe}) {
    SentencePieceVocabulary vocabulary = vocabulary_of(
        kind,
        {{"<unk>", 0, 2}, {mark, -2, 1}, {"a", -3, 1}, {"b", -3.5F, 1}, {"ab", -1, 1}, {"  ", 0, 4}, {"ba", 0, 4}});
    vocabulary.blank_prefix = PrefixPlace::kTextAndAfterSpecial;
    vocabulary.collapses_blanks = true;
    vocabulary.finds_user_pieces_late = true;
    const auto tokenizer = make_sentencepiece_tokenizer(vocabulary, "m");
    CHECK(tokenizer->encode("a  b") == TokenIds{1, 2, 1, 1, 3});
    CHECK(tokenizer->encode("a   b") == TokenIds{1, 2, 1, 1, 3});
    CHECK(tokenizer->encode("bab") == TokenIds{1, 6, 3});
    CHECK(tokenizer->encode("  a ") == TokenIds{1, 2});
    CHECK(tokenizer->encode(" ba a") == TokenIds{1, 6, 1, 2});
    // Only a unigram model may prefer other pieces.
    const bool unigram = kind == SentencePieceVocabulary::Kind::kUnigram;
    CHECK(tokenizer->encode("abab") == (unigram ? TokenIds{1, 4, 4} : TokenIds{1, 2, 6, 3}));
  }
}

TEST_CASE("sentencepiece unigram: sums are floats, and equal ones fall as the library has it",
          "[text][sentencepiece]") {
  SentencePieceVocabulary vocabulary =
      vocabulary_of(SentencePieceVocabulary::Kind::kUnigram,
                    {{"<unk>", 0, 2}, {"a", -8.1F, 1}, {"aa", -16.2F, 1}, {"aaa", -24.3F, 1}});
  vocabulary.finds_user_pieces_late = true;
  const auto tokenizer = make_sentencepiece_tokenizer(vocabulary, "m");
  CHECK(tokenizer->encode("aaaaa") == TokenIds{2, 3});
  CHECK(tokenizer->encode("aaaaaaa") == TokenIds{3, 3, 1});
  CHECK(tokenizer->encode("aaaaaaaaaaa") == TokenIds{3, 3, 1, 1, 3});
}

TEST_CASE("sentencepiece: a blank goes in front, and comes off again", "[text][sentencepiece]") {
  const std::string mark = kMark;
  SentencePieceVocabulary vocabulary =
      vocabulary_of(SentencePieceVocabulary::Kind::kBpe,
                    {{"<unk>", 0, 2}, {"<s>", 0, 3}, {"<u>", 0, 4}, {mark, -3, 1}, {"a", -3, 1}, {mark + "a", -1, 1}});
  const auto with = [&](PrefixPlace place) {
    vocabulary.blank_prefix = place;
    return make_sentencepiece_tokenizer(vocabulary, "test");
  };
  const std::string text = "a<u>a<s>a";
  const auto every = with(PrefixPlace::kEverySegment);
  CHECK(every->encode(text) == TokenIds{5, 2, 5, 1, 5});
  const auto special = with(PrefixPlace::kTextAndAfterSpecial);
  CHECK(special->encode(text) == TokenIds{5, 2, 4, 1, 5});
  const auto only = with(PrefixPlace::kTextOnly);
  CHECK(only->encode(text) == TokenIds{5, 2, 4, 1, 4});
  for (const auto* tokenizer : {&every, &special, &only}) {
    CHECK((*tokenizer)->decode((*tokenizer)->encode(text)) == text);
    CHECK((*tokenizer)->decode((*tokenizer)->encode(" a")) == " a");
    CHECK((*tokenizer)->token_end_offsets("a a", (*tokenizer)->encode("a a")) == std::vector<std::size_t>{1, 3});
  }
  CHECK(every->fingerprint() != only->fingerprint());
}

TEST_CASE("sentencepiece: one unbroken megabyte takes seconds, not hours", "[text][sentencepiece]") {
  const std::vector<Piece> pieces{{"<unk>", 0, 2}, {"a", -3, 1}, {"aa", -1, 1}, {"aaaa", -2, 1}};
  const auto start = std::chrono::steady_clock::now();
  CHECK(bpe(pieces)->encode(std::string(1 << 20, 'a')).size() == (1 << 18));
  CHECK(unigram(pieces)->encode(std::string(1 << 20, 'a')).size() == (1 << 18));
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(60));
}

TEST_CASE("sentencepiece: lists that do not fit are refused", "[text][sentencepiece][errors]") {
  SentencePieceVocabulary vocabulary = vocabulary_of(SentencePieceVocabulary::Kind::kBpe, {{"a", 0, 1}, {"b", 0, 1}});
  SECTION("scores") {
    vocabulary.scores.pop_back();
    CHECK(data_error([&] { make_sentencepiece_tokenizer(vocabulary, "m"); }) == "m: 1 scores and 2 types for 2 tokens");
  }
  SECTION("a score that is no number") {
    vocabulary.scores[1] = std::numeric_limits<float>::quiet_NaN();
    CHECK(data_error([&] { make_sentencepiece_tokenizer(vocabulary, "m"); }) ==
          "m: token 1 has score nan, which is no number");
  }
  SECTION("a type") {
    vocabulary.types[0] = 7;
    CHECK(data_error([&] { make_sentencepiece_tokenizer(vocabulary, "m"); }) ==
          "m: token 0 has type 7; known are 1 to 6");
  }
  SECTION("a byte") {
    vocabulary.types[0] = 6;
    CHECK(data_error([&] { make_sentencepiece_tokenizer(vocabulary, "m"); }) ==
          "m: byte token 0 is spelled 'a', not '<0xNN>'");
  }
  SECTION("special ids") {
    vocabulary.bos = 2;
    CHECK(data_error([&] { make_sentencepiece_tokenizer(vocabulary, "m"); }) ==
          "m: the BOS token has id 2, which is outside 0..1");
  }
  SECTION("BOS without a name") {
    vocabulary.add_bos = true;
    CHECK(data_error([&] { make_sentencepiece_tokenizer(vocabulary, "m"); }) ==
          "m: BOS is to be added, but no BOS token is named");
  }
  SECTION("text without a token") {
    const auto tokenizer = make_sentencepiece_tokenizer(vocabulary, "m");
    CHECK(data_error([&] { tokenizer->encode("ax"); }) ==
          "'x' of the text has no token in this model's vocabulary, nor have its bytes");
  }
  SECTION("a table of replacements") {
    vocabulary.charsmap = std::string("\xFF\xFF\xFF\x7F", 4) + std::string(8, '\0');
    CHECK(data_error([&] { make_sentencepiece_tokenizer(vocabulary, "m"); }) ==
          "m: the normalizer's table of 12 bytes claims a trie of 2147483647");
  }
}

std::string proto_text(int field, const std::string& bytes) {
  return std::string(1, static_cast<char>((field << 3) | 2)) + static_cast<char>(bytes.size()) + bytes;
}

TEST_CASE("sentencepiece: tokenizer.model is read field by field", "[text][sentencepiece]") {
  // piece "a" with score -1.5 (0xBFC00000) and type 1; piece "<s>" of type 3; BPE; no blank in front.
  const std::string piece = proto_text(1, "a") + std::string("\x15\x00\x00\xC0\xBF", 5) + std::string("\x18\x01", 2);
  const std::string control = proto_text(1, "<s>") + std::string("\x18\x03", 2);
  const std::string trainer = std::string("\x18\x02", 2) + std::string("\xC8\x02\x01", 3);  // model_type 2, bos_id 1
  const std::string normalizer = std::string("\x18\x00\x20\x00", 4);
  const SentencePieceVocabulary got = read_sentencepiece_model(
      proto_text(1, piece) + proto_text(1, control) + proto_text(2, trainer) + proto_text(3, normalizer), "m");
  CHECK(got.kind == SentencePieceVocabulary::Kind::kBpe);
  CHECK(got.pieces == std::vector<std::string>{"a", "<s>"});
  CHECK(got.scores == std::vector<float>{-1.5F, 0});
  CHECK(got.bos == 1);
  CHECK_FALSE(got.eos.has_value());
  CHECK_FALSE(got.blank_prefix.has_value());
  CHECK_FALSE(got.collapses_blanks);
}

TEST_CASE("sentencepiece: a damaged tokenizer.model is refused", "[text][sentencepiece][errors]") {
  const auto error = [](const std::string& bytes) { return data_error([&] { read_sentencepiece_model(bytes, "m"); }); };
  CHECK(error("") == "m: not a SentencePiece model: it holds no pieces");
  CHECK(error("\x0A\x05"
              "ab") == "m: not a SentencePiece model: field 1 claims 5 bytes, 2 are left");
  CHECK(error("\x0A") == "m: not a SentencePiece model: it ends inside a number");
  CHECK(error(std::string(11, '\x80')) == "m: not a SentencePiece model: a number has more than ten bytes");
  CHECK(error("\x0B") == "m: not a SentencePiece model: field 1 has wire type 3");
  CHECK(error(proto_text(1, "")) == "m: not a SentencePiece model: piece 0 has no text");
  CHECK(error(proto_text(2, "\x18\x04")) ==
        "m: not a SentencePiece model: trainer_spec.model_type = 4 is not supported; supported: 1 (unigram), 2 (BPE)");
  // Cut anywhere, a good one is an error or a shorter vocabulary.
  std::string good;
  for (int i = 0; i < 5; ++i) good += proto_text(1, proto_text(1, "abc") + std::string("\x18\x01", 2));
  for (std::size_t size = 0; size < good.size(); ++size) {
    const std::vector<char> cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
    std::size_t n_pieces = 0;
    try {
      n_pieces = read_sentencepiece_model({cut.data(), cut.size()}, "m").pieces.size();
    } catch (const DataError&) {  // as good
    }
    CHECK(n_pieces < 5);
  }
}

}  // namespace
}  // namespace fathom::text
