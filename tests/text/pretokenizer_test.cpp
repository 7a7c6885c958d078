#include "harness/text/pretokenizer.h"

#include <string>
#include <vector>

#include "harness/core/error.h"
#include "tests/support/catch.h"

using fathom::text::Pretokenizer;

namespace {

using Words = std::vector<std::string>;

Words words_of(const std::string& name, const std::string& text) {
  Words words;
  for (const auto word : Pretokenizer(name, "test").split(text)) words.emplace_back(word);
  return words;
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
