#include "harness/text/pretokenizer.h"

#include <string>
#include <vector>

#include "harness/core/error.h"
#include "tests/support/catch.h"

using fathom::text::Pretokenizer;
using fathom::text::SplitBehavior;

namespace {

using Words = std::vector<std::string>;

Words words_of(const std::string& name, const std::string& text) {
  Words words;
  for (const auto word : Pretokenizer(name, "test").split(text)) words.emplace_back(word);
  return words;
}

Words split_by(const std::string& pattern, const std::string& text, SplitBehavior behavior = SplitBehavior::kIsolated) {
  Words words;
  for (const auto word : Pretokenizer({{pattern, behavior, false, false}}, "t").split(text)) words.emplace_back(word);
  return words;
}

std::string pattern_error(const std::string& pattern) {
  try {
    Pretokenizer({{pattern, SplitBehavior::kIsolated, false, false}}, "t");
  } catch (const fathom::DataError& error) {
    return error.what();
  }
  return "no DataError";
}

}  // namespace

TEST_CASE("pretokenizer: GPT-2 keeps a blank with the word behind it", "[text][pretokenizer]") {
  CHECK(words_of("gpt-2", "It's 12 o'clock, isn't it?") ==
        Words{"It", "'s", " 12", " o", "'", "clock", ",", " isn", "'t", " it", "?"});
  CHECK(words_of("gpt-2", "a  b\n\n c ") == Words{"a", " ", " b", "\n\n", " c", " "});
  CHECK(words_of("gpt-2", "I'M x²½") == Words{"I", "'", "M", " x", "²½"});
  CHECK(words_of("gpt-2", "").empty());
}

TEST_CASE("pretokenizer: letters and digits are Unicode's", "[text][pretokenizer]") {
  CHECK(words_of("gpt-2", "Ångström 漢字 ٣٤ 😀!") == Words{"Ångström", " 漢字", " ٣٤", " 😀!"});
  CHECK(words_of("gpt-2", "cafe\u0301 x") == Words{"cafe", "\u0301", " x"});
  CHECK(words_of("gpt-2", "a\u00A0\u3000b") == Words{"a", "\u00A0", "\u3000", "b"});
}

TEST_CASE("pretokenizer: SmolLM cuts out every digit before anything else", "[text][pretokenizer]") {
  CHECK(words_of("smollm", "x  12 y3") == Words{"x", "  ", "1", "2", " y", "3"});
  CHECK(words_of("smollm", " 7½") == Words{" ", "7", "½"});
}

TEST_CASE("pretokenizer: Llama 3 and Qwen differ in their numbers", "[text][pretokenizer]") {
  CHECK(words_of("llama-bpe", "I'M 12345 -x\n\n  y") ==
        Words{"I", "'M", " ", "123", "45", " -", "x", "\n\n", " ", " y"});
  CHECK(words_of("qwen2", "I'm 123(a).\n\nb") == Words{"I", "'m", " ", "1", "2", "3", "(a", ").\n\n", "b"});
  CHECK(Pretokenizer("llama3", "t").takes_whole_words());
  CHECK_FALSE(Pretokenizer("qwen2", "t").takes_whole_words());
}

TEST_CASE("pretokenizer: bytes that are not UTF-8 stand alone", "[text][pretokenizer]") {
  CHECK(words_of("gpt-2", "ab\xFF\xE6\x98 cd") == Words{"ab", "\xFF", "\xE6", "\x98", " cd"});
  CHECK(words_of("gpt-2", std::string("a\0b", 3)) == Words{"a", std::string("\0", 1), "b"});
}

TEST_CASE("pretokenizer: very long runs of blanks and letters are no problem", "[text][pretokenizer]") {
  for (const std::string& name : Pretokenizer::names()) {
    CHECK(words_of(name, std::string(300000, ' ') + "x").size() == 2);
    CHECK(words_of(name, std::string(300000, 'x')).size() == 1);
  }
}

// Words of the patterns below are those of tokenizers 0.23.3, pre_tokenizers.Split.
TEST_CASE("pretokenizer: classes may hold classes and be intersected", "[text][pretokenizer]") {
  CHECK(split_by(R"( ?[^(\s|[.,!?…。，、।۔،])]+)", "Hello, world|x (y)") ==
        Words{"Hello", ",", " world", "|", "x", " (", "y", ")"});
  CHECK(split_by(R"([\p{L}&&[^\p{Han}]]+)", "ab漢字cd、") == Words{"ab", "漢字", "cd", "、"});
  CHECK(split_by(R"([a-z&&[^b-y]&&\p{L}]+)", "azbz") == Words{"az", "b", "z"});
  CHECK(split_by(R"([\p{L}&&a-c]+)", "abcd") == Words{"abc", "d"});
  CHECK(split_by(R"([^\S\n]+)", "a \n\tb", SplitBehavior::kRemoved) == Words{"a", "\n", "b"});
}

TEST_CASE("pretokenizer: patterns mean what Oniguruma has them mean", "[text][pretokenizer]") {
  CHECK(split_by(R"(\p{N}{1,3}+)", "12345") == Words{"12345"});  // a repeated interval, not a possessive one
  CHECK(split_by("a{2}?", "aaa") == Words{"aa", "a"});
  CHECK(split_by("a{,2}", "aaab") == Words{"aa", "a", "b"});
  CHECK(split_by(R"(\h+)", "xfaceg") == Words{"x", "face", "g"});
  CHECK(split_by(R"([\v])",
                 "a\n\x0B"
                 "b") == Words{"a\n", "\x0B", "b"});
  CHECK(split_by("^a|b$", "a\nab\nb") == Words{"a", "\n", "a", "b", "\n", "b"});
  CHECK(split_by(R"(\p{Han}+)", "漢、字") == Words{"漢", "、", "字"});
  CHECK(split_by(R"(\w+)", "a²_\u0301ⓐ-b") == Words{"a²_\u0301ⓐ", "-", "b"});
}

TEST_CASE("pretokenizer: a match of nothing cuts", "[text][pretokenizer]") {
  CHECK(split_by(R"((?=(\d{3})+(?!\d)))", "1234567") == Words{"1", "234", "567"});
  CHECK(split_by("x*", "axxb") == Words{"a", "xx", "b"});
  CHECK(split_by("(?=[A-Z])", "aBcD", SplitBehavior::kMergedWithPrevious) == Words{"a", "Bc", "D"});
}

TEST_CASE("pretokenizer: white space is Unicode's, without the Mongolian vowel separator", "[text][pretokenizer]") {
  CHECK(split_by(R"(\s+)", "a\u180E b\u0085\u3000c", SplitBehavior::kRemoved) == Words{"a\u180E", "b", "c"});
  CHECK(split_by(R"(\S+)", "a\u180E b", SplitBehavior::kIsolated) == Words{"a\u180E", " ", "b"});
  CHECK(words_of("gpt-2", "!\u180E") == Words{"!\u180E"});
}

TEST_CASE("pretokenizer: syntax that is not translated is refused by name", "[text][pretokenizer][errors]") {
  CHECK(pattern_error(R"(\X)") == R"(t: pre-tokenizer pattern '\X': '\X' at byte 0 is not supported)");
  CHECK(pattern_error(R"(a\1)").find(R"('\1' at byte 1 is not supported)") != std::string::npos);
  CHECK(pattern_error("[[:punct:]]").find("a POSIX bracket at byte 1 is not supported") != std::string::npos);
  CHECK(pattern_error(R"(\p{Punct})").find("property 'Punct' at byte 0 is not supported") != std::string::npos);
  CHECK(pattern_error("a(?i)b|c").find("'(?i)' inside a pattern at byte 1 is not supported") != std::string::npos);
  CHECK(pattern_error("(?i:ss)").find("'ss' without case at byte 4 is not supported") != std::string::npos);
  CHECK(pattern_error("(?~a)").find("'(?~a' at byte 0 is not supported") != std::string::npos);
  CHECK(pattern_error("[a").find("a class without an end at byte 2 is not supported") != std::string::npos);
  CHECK(pattern_error("(a").find("t: pre-tokenizer pattern '(a': missing closing parenthesis") == 0);
}

TEST_CASE("pretokenizer: the bound on work grows with the text, and still stops a pattern that explodes",
          "[text][pretokenizer]") {
  CHECK(words_of("gpt-2", std::string(3'000'000, ' ') + "x").size() == 2);
  CHECK_THROWS_AS(split_by("(?:a|aa)+[bc]", std::string(60, 'a')), fathom::DataError);
}

TEST_CASE("pretokenizer: an unknown name is an error that lists the known ones", "[text][pretokenizer][errors]") {
  try {
    Pretokenizer("gpt-5", "model.gguf");
    FAIL("nothing was thrown");
  } catch (const fathom::DataError& error) {
    const std::string message = error.what();
    CHECK(message.find("model.gguf: pre-tokenizer 'gpt-5' is unknown; known: chatglm-bpe, codeshell,") == 0);
    CHECK(message.find(", gpt-2, gpt-4o, llama-bpe,") != std::string::npos);
  }
}
