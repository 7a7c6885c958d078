#include "harness/task/haystack.h"

#include <fstream>

#include "harness/core/text_util.h"
#include "tests/support/catch.h"
#include "tests/support/task_fixture.h"
#include "tests/support/temp_folder.h"

namespace {

using namespace fathom;

std::string text_of(const task::MeasuredHaystack& haystack, std::int64_t n) {
  std::string text;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto& unit = haystack.units[static_cast<std::size_t>(i)];
    text += (i == 0 ? "" : unit.separator) + unit.text;
  }
  return text;
}

std::shared_ptr<const text::TextCorpus> corpus_of(const test::TempFolder& folder, const std::string& content) {
  std::ofstream(folder.file("text.txt")) << content;
  return text::TextCorpus::load(folder.file("text.txt"));
}

}  // namespace

TEST_CASE("haystack: token counts are those of the units in place, across chunks", "[task][haystack]") {
  const test::TripletTokenizer tokenizer;
  for (const auto& source : {std::shared_ptr<task::Haystack>(task::make_prose_haystack("en", 17)),
                             std::shared_ptr<task::Haystack>(task::make_noise_haystack("The tea is warm.", "\n")),
                             std::shared_ptr<task::Haystack>(task::make_prose_haystack("zh", 17))}) {
    const auto haystack = task::measure_haystack(*source, tokenizer, 200, 0);
    REQUIRE(haystack.size() >= 200);
    for (const std::int64_t n : {1, 2, 63, 64, 65, 128, 130, 200}) {
      const auto whole =
          static_cast<std::int64_t>(tokenizer.encode(text_of(haystack, n), text::SpecialTokens::kPlainText).size());
      CHECK(haystack.tokens(n) == whole);
    }
    CHECK_FALSE(haystack.complete);
  }
}

TEST_CASE("haystack: measuring in steps gives the same as at once", "[task][haystack]") {
  const test::TripletTokenizer tokenizer;
  const auto source = task::make_prose_haystack("en", 3);
  const auto once = task::measure_haystack(*source, tokenizer, 0, 5000);
  const auto begun = task::measure_haystack(*source, tokenizer, 0, 100);
  const auto grown = task::measure_haystack(*source, tokenizer, 0, 5000, begun);
  CHECK(begun.size() < grown.size());
  CHECK(once.end_tokens == grown.end_tokens);
  CHECK(once.tokens(once.size()) >= 5000);
}

TEST_CASE("haystack: filler sentences are six fillers and a stop, each on its own", "[task][haystack]") {
  const auto source = task::make_filler_haystack(RngKey("key"), 200);
  const auto units = source->units(0, 300);
  for (const auto& unit : units) {
    const auto words = split(unit.text, ' ');
    REQUIRE(words.size() == 7);
    for (std::size_t i = 0; i < 6; ++i) {
      CHECK(words[i][0] == 'f');
      const auto number = parse_int(words[i].substr(1));
      REQUIRE(number.has_value());
      CHECK((*number >= 0 && *number < 200));
    }
    CHECK(words[6] == ".");
  }
  CHECK(source->units(250, 251).front().text == units[250].text);
}

TEST_CASE("haystack: words are the sentences cut at blanks, with boundaries at their starts", "[task][haystack]") {
  const auto sentences = task::make_prose_haystack("en", 8)->units(0, 40);
  const auto words = task::make_word_haystack(task::make_prose_haystack("en", 8));
  const auto units = words->units(0, 300);
  std::string from_words;
  std::string from_sentences;
  std::size_t boundaries = 0;
  for (const auto& unit : units) {
    from_words += unit.separator + unit.text;
    boundaries += unit.boundary ? 1 : 0;
  }
  for (const auto& unit : sentences) from_sentences += unit.separator + unit.text;
  CHECK(starts_with(from_sentences, from_words));
  CHECK(boundaries > 15);
  CHECK(boundaries < 40);
  CHECK(units[0].boundary);
  CHECK_FALSE(units[1].boundary);
}

TEST_CASE("haystack: a user's text starts at its offset, goes round once, and repeats only if asked",
          "[task][haystack]") {
  const test::TempFolder folder;
  const auto corpus = corpus_of(folder, "One is here. Two is here.\nThree is here.\n");
  REQUIRE(corpus->sentences().size() == 3);
  const auto once = task::make_corpus_haystack(corpus, 1, task::CorpusRepeat::kOnce);
  CHECK(once->size() == std::optional<std::int64_t>(3));
  const auto units = once->units(0, 3);
  CHECK(units[0].text == "Two is here.");
  CHECK(units[1].text == "Three is here.");
  CHECK(units[1].separator == "\n");
  CHECK(units[2].text == "One is here.");
  CHECK(units[2].separator == "\n");
  CHECK(once->limit_reason().find("has 3 sentences; use a longer text or set haystack.repeat = on") !=
        std::string::npos);
  const auto measured = task::measure_haystack(*once, test::ByteTokenizer(), 0, 1000);
  CHECK(measured.complete);
  CHECK(measured.size() == 3);

  const auto repeated = task::make_corpus_haystack(corpus, 1, task::CorpusRepeat::kRepeat);
  CHECK_FALSE(repeated->size().has_value());
  CHECK(repeated->units(3, 4).front().text == "Two is here.");
}

TEST_CASE("haystack: the cache hands out one haystack an id, whatever else it holds", "[task][haystack]") {
  const test::TripletTokenizer tokenizer;
  task::HaystackCache cache;
  const auto get = [&](std::uint64_t seed, std::int64_t tokens) {
    return cache.get(
        "prose " + std::to_string(seed),
        [seed] { return std::shared_ptr<const task::Haystack>(task::make_prose_haystack("en", seed)); }, tokenizer, 1,
        tokens);
  };
  const auto first = get(1, 500);
  const auto other = get(2, 100000);
  const auto again = get(1, 3000);
  CHECK(again.source == first.source);
  CHECK(first.measured->tokens(first.measured->size()) >= 500);
  CHECK(again.measured->tokens(again.measured->size()) >= 3000);
  CHECK(again.measured->units[0].text == first.measured->units[0].text);
  CHECK(other.measured->units[0].text != first.measured->units[0].text);
}
