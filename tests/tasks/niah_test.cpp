#include <fstream>
#include <map>
#include <set>

#include "harness/core/text_util.h"
#include "tasks/tasks.h"
#include "tests/support/catch.h"
#include "tests/support/oracle_solver.h"
#include "tests/support/task_fixture.h"
#include "tests/support/temp_folder.h"

namespace {

using namespace fathom;
using task::Sample;
using task::TaskVariant;

std::unique_ptr<task::Task> make_niah(std::string_view name, const task::TaskContext& context,
                                      const std::map<std::string, std::string>& options = {},
                                      TaskVariant variant = TaskVariant::kBalanced) {
  const task::TaskEntry& entry = tasks::registry().at(name);
  return entry.make(entry, variant, OptionSource("[task." + std::string(name) + "]", options), context);
}

template <typename Error, typename Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no such error";
}

std::size_t count_needles(const Sample& sample, const std::string& mark) {
  std::size_t n = 0;
  for (std::size_t at = sample.prompt_text.find(mark); at != std::string::npos;
       at = sample.prompt_text.find(mark, at + 1))
    ++n;
  return n;
}

}  // namespace

TEST_CASE("niah: without a depth axis every stratum gets as many gold needles", "[tasks][niah]") {
  const auto fixture = test::synthetic_fixture();
  for (const std::string_view name : {"niah_single_2", "niah_multikey_1", "niah_multikey_2", "niah_multivalue"}) {
    INFO(name);
    const auto task = make_niah(name, fixture->context());
    std::map<std::int32_t, int> gold_by_depth;
    for (std::int64_t i = 0; i < 22; ++i) {
      const Sample sample = task->make_sample({500, std::nullopt}, i, 1);
      for (const auto& needle : sample.needles) {
        if (needle.gold) ++gold_by_depth[needle.requested_depth_bp.value()];
      }
    }
    CHECK(gold_by_depth.size() == 11);
    for (const auto& [depth, n] : gold_by_depth) CHECK(n == (name == "niah_multivalue" ? 8 : 2));
  }
}

TEST_CASE("niah: multikey_2 holds N + 1 needles and nothing else", "[tasks][niah]") {
  const auto fixture = test::synthetic_fixture();
  const auto task = make_niah("niah_multikey_2", fixture->context());
  const Sample sample = task->make_sample({200, 3000}, 4, 1);
  CHECK(count_needles(sample, "note ") == static_cast<std::size_t>(sample.haystack_units + 1));
  const auto words = test::words_of(sample.prompt_text);
  CHECK(words.size() == static_cast<std::size_t>(3 * (sample.haystack_units + 1) + 2));
  CHECK(task->in_text_guess(200) == 1.0 / static_cast<double>(sample.haystack_units + 1));
  const std::set<std::string> different(words.begin(), words.end());
  CHECK(different.size() == static_cast<std::size_t>(2 * (sample.haystack_units + 1) + 2));
}

TEST_CASE("niah: a length that needs more keys than there are is refused with the largest that does not",
          "[tasks][niah][errors]") {
  const auto fixture = test::synthetic_fixture();
  const auto task = make_niah("niah_multikey_2", fixture->context());
  const std::string message = message_of<task::TooLongError>([&] { task->make_sample({4096, 0}, 0, 1); });
  CHECK(message ==
        "niah_multikey_2: length 4096 needs more haystack than there is: there are 200 keys and 200 values of its "
        "forms, and no two "
        "pairs share one; largest feasible length here is 605");
  CHECK(task->make_sample({605, 0}, 0, 1).haystack_units == 199);
  CHECK_THROWS_AS(task->make_sample({606, 0}, 0, 1), task::TooLongError);
  CHECK(task->largest_length_tokens(1) == std::optional<std::int64_t>(605));
  CHECK_FALSE(make_niah("niah_single_2", fixture->context())->largest_length_tokens(1).has_value());
}

TEST_CASE("niah: too short a length is refused in the words of the specification", "[tasks][niah][errors]") {
  const auto fixture = test::synthetic_fixture();
  fixture->context().n_samples = 1;
  const auto task = make_niah("niah_multikey_2", fixture->context());
  const std::string message = message_of<TooShortError>([&] { task->make_sample({10, 0}, 0, 1); });
  CHECK(
      message ==
      "niah_multikey_2: length 10 is too short: prompt 14 + budget 1 = 15 tokens; smallest feasible length here is 15");
  CHECK(task->smallest_length_tokens(1) == 15);
}

TEST_CASE("niah: the ruler variant keeps the reference's floors, balanced uses the small ones", "[tasks][niah]") {
  const auto fixture = test::synthetic_fixture();
  const auto least_units = [&](std::string_view name, TaskVariant variant, std::int64_t length) {
    const auto task = make_niah(name, fixture->context(), {}, variant);
    return task->make_sample({std::max(length, task->smallest_length_tokens(1)), std::nullopt}, 0, 1).haystack_units;
  };
  CHECK(least_units("niah_single_1", TaskVariant::kBalanced, 0) == 1);
  CHECK(least_units("niah_single_2", TaskVariant::kBalanced, 0) == 4);
  CHECK(least_units("niah_multikey_2", TaskVariant::kBalanced, 0) == 3);
  CHECK(least_units("niah_single_1", TaskVariant::kRuler, 0) == 5);
  CHECK(least_units("niah_single_2", TaskVariant::kRuler, 0) == 500);
  CHECK(least_units("niah_multikey_3", TaskVariant::kRuler, 0) == 5);
}

TEST_CASE("niah: extra_keys adds distractors and lowers the in-text guess", "[tasks][niah]") {
  const auto fixture = test::synthetic_fixture();
  const auto task = make_niah("niah_single_2", fixture->context(), {{"extra_keys", "7"}});
  const Sample sample = task->make_sample({200, 5000}, 0, 1);
  CHECK(sample.needles.size() == 8);
  CHECK(count_needles(sample, "note ") == 8);
  CHECK(task->in_text_guess(200) == 0.125);
  CHECK(sample.key.find("|digits=-;extra_keys=7|") != std::string::npos);

  const std::string too_many = message_of<ConfigError>([&] {
    make_niah("niah_single_2", fixture->context(), {{"extra_keys", "200"}});
  });
  CHECK(too_many ==
        "niah_single_2: extra_keys = 200 needs 201 keys and 201 values, but there are 200 and 200 of their forms");
  const std::string ruler = message_of<ConfigError>([&] {
    make_niah("niah_single_2", fixture->context(), {{"extra_keys", "40"}}, TaskVariant::kRuler);
  });
  CHECK(ruler ==
        "niah_single_2@ruler: extra_keys = 40 makes 41 needles, but RULER has 40 depths; use fewer, or @balanced");
}

TEST_CASE("niah: digits sets the size of numbers; a closed vocabulary needs the words for it", "[tasks][niah]") {
  const auto english = test::english_fixture();
  const Sample sample = make_niah("niah_single_1", english->context(), {{"digits", "5"}})->make_sample({1000, 0}, 0, 1);
  CHECK(sample.references.front().size() == 5);
  CHECK(parse_int(sample.references.front()).value() >= 10000);

  test::TaskFixture closed("synthetic", std::make_unique<text::WordTokenizer>(text::VocabularySpec{}, false));
  const std::string message = message_of<ConfigError>([&] {
    make_niah("niah_single_1", closed.context(), {{"digits", "3"}});
  });
  CHECK(message ==
        "digits needs a vocabulary with the words 0 to 9, which this model's does not have; leave the option out");

  text::VocabularySpec with_digits;
  with_digits.n_digits = 10;
  test::TaskFixture digits("synthetic", std::make_unique<text::WordTokenizer>(with_digits, false));
  const Sample three = make_niah("niah_single_1", digits.context(), {{"digits", "3"}})->make_sample({100, 0}, 0, 1);
  CHECK(test::words_of(three.references.front()).size() == 3);
  CHECK(three.generation_budget == 3);
}

TEST_CASE("niah: uuids are version 4", "[tasks][niah]") {
  const auto fixture = test::english_fixture();
  const auto task = make_niah("niah_single_3", fixture->context());
  for (std::int64_t i = 0; i < 20; ++i) {
    const std::string uuid = task->make_sample({600, 0}, i, 1).references.front();
    REQUIRE(uuid.size() == 36);
    CHECK(uuid[14] == '4');
    CHECK(std::string("89ab").find(uuid[19]) != std::string::npos);
    CHECK(uuid.find_first_not_of("0123456789abcdef-") == std::string::npos);
  }
}

TEST_CASE("niah: budgets follow rule 3, and the thinking budget is kept apart", "[tasks][niah]") {
  const auto fixture = test::english_fixture();
  fixture->context().think_tokens = 50;
  const Sample sample = make_niah("niah_single_2", fixture->context())->make_sample({1000, 0}, 0, 1);
  CHECK(sample.generation_budget == 128);
  CHECK(sample.think_budget == 50);
  CHECK(sample.prompt_tokens() + 128 + 50 <= 1000);
  CHECK(sample.slack_tokens() >= 0);
  CHECK(sample.slack_tokens() <= 60);  // less than two sentences

  test::TaskFixture bytes("en", std::make_unique<test::ByteTokenizer>());
  // " a, b, c, and d" with seven digits each is 39 bytes; with a quarter for room that stays below the task's 128.
  const Sample multi = make_niah("niah_multivalue", bytes.context())->make_sample({4000, std::nullopt}, 0, 1);
  CHECK(multi.answer_text.size() == 1 + 4 * 7 + 2 + 2 + 6);
  CHECK(multi.generation_budget == 128);
}

TEST_CASE("niah: the pair mode decides what neighbouring cells share", "[tasks][niah][pairing]") {
  const auto fixture = test::synthetic_fixture();
  const auto references = [&](task::PairMode pair, std::int64_t length, std::int32_t depth) {
    fixture->context().pair = pair;
    return make_niah("niah_single_3", fixture->context())->make_sample({length, depth}, 0, 1).references.front();
  };
  using task::PairMode;
  CHECK(references(PairMode::kBoth, 100, 0) == references(PairMode::kBoth, 200, 5000));
  CHECK(references(PairMode::kNone, 100, 0) != references(PairMode::kNone, 100, 5000));
  CHECK(references(PairMode::kNone, 100, 0) != references(PairMode::kNone, 200, 0));
  CHECK(references(PairMode::kDepth, 100, 0) == references(PairMode::kDepth, 100, 5000));
  CHECK(references(PairMode::kDepth, 100, 0) != references(PairMode::kDepth, 200, 0));
  CHECK(references(PairMode::kLength, 100, 0) == references(PairMode::kLength, 200, 0));
  CHECK(references(PairMode::kLength, 100, 0) != references(PairMode::kLength, 100, 5000));
}

TEST_CASE("niah: ruler samples share one text from its start, balanced ones have their own", "[tasks][niah]") {
  const auto fixture = test::english_fixture();
  const auto first_words = [&](TaskVariant variant, std::int64_t index) {
    const Sample sample =
        make_niah("niah_single_2", fixture->context(), {}, variant)->make_sample({2000, std::nullopt}, index, 1);
    const std::size_t at = sample.prompt_text.find('\n') + 1;
    return sample.prompt_text.substr(at, 40);
  };
  // Sample 5 has its needle further inside.
  CHECK(first_words(TaskVariant::kRuler, 2) == first_words(TaskVariant::kRuler, 5));
  CHECK(first_words(TaskVariant::kBalanced, 2) != first_words(TaskVariant::kBalanced, 5));
}

TEST_CASE("niah: a user's text is the haystack, and is refused where it ends", "[tasks][niah][haystack]") {
  const test::TempFolder folder;
  std::ofstream(folder.file("story.txt")) << "It rained all day. The boat lay still. Nobody came by. A bell rang once. "
                                             "Night fell at last. The end is near.";
  const auto fixture = test::english_fixture();
  fixture->context().haystack.kind = task::HaystackSpec::Kind::kCorpus;
  fixture->context().haystack.corpus = text::TextCorpus::load(folder.file("story.txt"));
  const auto task = make_niah("niah_single_2", fixture->context());
  const Sample sample = task->make_sample({task->smallest_length_tokens(1), 0}, 0, 1);
  CHECK(sample.prompt_text.find("The boat lay still.") != std::string::npos);

  const std::string message = message_of<task::TooLongError>([&] { task->make_sample({2000, 0}, 0, 1); });
  CHECK(starts_with(message, "niah_single_2: length 2000 needs more haystack than there is: the haystack text '"));
  CHECK(message.find("story.txt' has 6 sentences; use a longer text or set haystack.repeat = on; largest feasible "
                     "length here is ") != std::string::npos);

  CHECK(message.find("here is " + std::to_string(task->largest_length_tokens(1).value())) != std::string::npos);
  CHECK(task->make_sample({task->largest_length_tokens(1).value(), 0}, 0, 1).haystack_units == 6);

  fixture->context().haystack.repeat = true;
  CHECK(make_niah("niah_single_2", fixture->context())->make_sample({2000, 0}, 0, 1).haystack_units > 6);

  const auto closed = test::synthetic_fixture();
  closed->context().haystack = fixture->context().haystack;
  CHECK(message_of<ConfigError>([&] { make_niah("niah_single_2", closed->context()); }) ==
        "a haystack text needs a pack with an open vocabulary, but 'synthetic' has a closed one; use haystack.source = "
        "prose or noise");
  CHECK(make_niah("niah_multikey_2", closed->context()) != nullptr);  // needles are its haystack
}

TEST_CASE("niah: a value that stands in the user's text is drawn again", "[tasks][niah][haystack]") {
  const test::TempFolder folder;
  {
    std::ofstream story(folder.file("numbers.txt"));
    for (int n = 10; n < 99; ++n) story << "We counted " << n << " of them. ";
  }
  const auto fixture = test::english_fixture();
  fixture->context().haystack.kind = task::HaystackSpec::Kind::kCorpus;
  fixture->context().haystack.corpus = text::TextCorpus::load(folder.file("numbers.txt"));
  const auto task = make_niah("niah_single_2", fixture->context(), {{"digits", "2"}});
  for (std::int64_t i = 0; i < 5; ++i) {
    const Sample sample = task->make_sample({600, 5000}, i, 1);
    CHECK(count_needles(sample, sample.references.front()) == 1);
  }
}

TEST_CASE("niah: haystack.source changes the text, not the facts", "[tasks][niah][haystack]") {
  const auto fixture = test::english_fixture();
  const Sample prose = make_niah("niah_single_2", fixture->context())->make_sample({800, 5000}, 0, 1);
  fixture->context().haystack.kind = task::HaystackSpec::Kind::kNoise;
  const Sample noise = make_niah("niah_single_2", fixture->context())->make_sample({800, 5000}, 0, 1);
  CHECK(prose.references == noise.references);
  CHECK(noise.prompt_text.find("\nRain taps on the roof.") != std::string::npos);
  CHECK(prose.key == noise.key);
  CHECK(prose.address != noise.address);
}

TEST_CASE("niah: the chat style without a prefix lets the answer open the turn", "[tasks][niah]") {
  test::TaskFixture chat("en", std::make_unique<test::TripletTokenizer>(), text::PromptStyle::kChatNoPrefix,
                         text::chat_template("chatml"));
  const Sample sample = make_niah("niah_single_2", chat.context())->make_sample({1000, 0}, 0, 1);
  CHECK(sample.answer_prefix.empty());
  CHECK(sample.answer_text == sample.references.front());

  test::TaskFixture prefixed("en", std::make_unique<test::TripletTokenizer>(), text::PromptStyle::kChat,
                             text::chat_template("chatml"));
  const Sample with = make_niah("niah_single_2", prefixed.context())->make_sample({1000, 0}, 0, 1);
  CHECK(ends_with(with.prompt_text, with.answer_prefix));
  CHECK(with.answer_text == " " + with.references.front());
  CHECK(with.address != sample.address);
}
