// common_words and frequent_words: what is counted in the prompt is what the task says (tasks specification 1.3, 1.4).

#include <algorithm>
#include <map>
#include <set>

#include "harness/core/text_util.h"
#include "tasks/tasks.h"
#include "tests/support/catch.h"
#include "tests/support/oracle_solver.h"
#include "tests/support/task_fixture.h"

namespace {

using namespace fathom;
using task::Sample;
using task::TaskVariant;

std::unique_ptr<task::Task> make_list_task(std::string_view name, const task::TaskContext& context,
                                           TaskVariant variant = TaskVariant::kBalanced,
                                           const std::map<std::string, std::string>& options = {}) {
  const task::TaskEntry& entry = tasks::registry().at(name);
  return entry.make(entry, variant, OptionSource("[task.x]", options), context);
}

using Counts = std::map<std::string, std::int64_t>;

/// How often each word stands in the real list of an English cwe prompt: behind its number, after the last intro.
Counts cwe_counts(const Sample& sample) {
  const std::size_t begin = sample.prompt_text.rfind("Here is a long series");
  const std::size_t end = sample.prompt_text.find("\nQuestion:", begin);
  const auto words = test::words_of(sample.prompt_text.substr(begin, end - begin));
  Counts counts;
  std::int64_t number = 1;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] != std::to_string(number) + ")") continue;
    ++counts[words[i + 1]];
    ++number;
  }
  return counts;
}

/// How often each word stands in an fwe prompt of the closed vocabulary.
Counts fwe_word_counts(const Sample& sample) {
  Counts counts;
  for (const std::string& word : test::words_of(sample.prompt_text)) ++counts[word];
  counts.erase("most");
  return counts;
}

std::vector<std::int64_t> falling(const Counts& counts) {
  std::vector<std::int64_t> out;
  for (const auto& each : counts) out.push_back(each.second);
  std::sort(out.rbegin(), out.rend());
  return out;
}

}  // namespace

TEST_CASE("cwe: ten words stand 30 times, all others 3 times; 6 and 1 below 4096 tokens", "[tasks][cwe]") {
  const auto fixture = test::english_fixture();
  for (const TaskVariant variant : {TaskVariant::kBalanced, TaskVariant::kRuler}) {
    const auto task = make_list_task("cwe", fixture->context(), variant);
    for (const std::int64_t length : {2000, 6000}) {
      INFO(task::to_string(variant) << " " << length);
      const Sample sample = task->make_sample({length, std::nullopt}, 1, 1);
      const std::int64_t common = length < 4096 ? 6 : 30;
      const std::int64_t rare = length < 4096 ? 1 : 3;
      const Counts counts = cwe_counts(sample);
      CHECK(static_cast<std::int64_t>(counts.size()) == 10 + sample.haystack_units);
      for (const auto& [word, count] : counts) {
        const bool asked =
            std::find(sample.references.begin(), sample.references.end(), word) != sample.references.end();
        CHECK(count == (asked ? common : rare));
      }
      CHECK(sample.slack_tokens() <= 60);
    }
  }
}

TEST_CASE("cwe: the worked example gives ten answers that the real list does not ask for", "[tasks][cwe]") {
  const auto fixture = test::english_fixture();
  const Sample with = make_list_task("cwe", fixture->context())->make_sample({3000, std::nullopt}, 0, 1);
  const std::size_t second = with.prompt_text.find("Here is a long series", 1);
  REQUIRE(second != std::string::npos);
  const std::string example = with.prompt_text.substr(0, second);
  CHECK(ends_with(example, "\n"));
  CHECK(example.find(" come back most often are 1) ") != std::string::npos);
  const auto words = test::words_of(example);
  for (const std::string& reference : with.references) {
    CHECK(std::find(words.begin(), words.end(), reference) == words.end());
  }
  const Sample without = make_list_task("cwe", fixture->context(), TaskVariant::kBalanced, {{"examples", "0"}})
                             ->make_sample({3000, std::nullopt}, 0, 1);
  CHECK(without.prompt_text.find("Here is a long series", 1) == std::string::npos);
  CHECK(without.haystack_units > with.haystack_units);
}

TEST_CASE("cwe: longer lists go on with compounds; a closed vocabulary refuses them with the reason", "[tasks][cwe]") {
  const auto fixture = test::english_fixture();
  const Sample large = make_list_task("cwe", fixture->context())->make_sample({60000, std::nullopt}, 0, 1);
  CHECK(large.haystack_units > 2000);
  CHECK(static_cast<std::int64_t>(cwe_counts(large).size()) == 10 + large.haystack_units);

  const auto closed = test::synthetic_fixture();
  try {
    make_list_task("cwe", closed->context())->make_sample({6000, std::nullopt}, 0, 1);
    FAIL("no error");
  } catch (const task::TooLongError& error) {
    CHECK(std::string(error.what()).find("the closed vocabulary has 590 words besides the common ones") !=
          std::string::npos);
    CHECK(error.largest_length_tokens() > 2000);
  }
}

TEST_CASE("cwe: RULER's order is one for every list of a size, balanced draws it per sample", "[tasks][cwe]") {
  const auto fixture = test::synthetic_fixture();
  const auto places = [&fixture](TaskVariant variant, std::int64_t index) {
    const Sample sample =
        make_list_task("cwe", fixture->context(), variant)->make_sample({200, std::nullopt}, index, 1);
    const auto words = test::words_of(sample.prompt_text);
    std::vector<std::size_t> at;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i] == sample.references.front()) at.push_back(i);
    }
    return at;
  };
  CHECK(places(TaskVariant::kRuler, 0) == places(TaskVariant::kRuler, 1));
  CHECK(places(TaskVariant::kBalanced, 0) != places(TaskVariant::kBalanced, 1));
}

TEST_CASE("fwe: 53 words are the fewest, and give 32, 8, 3, 2 and 1", "[tasks][fwe]") {
  const auto fixture = test::synthetic_fixture();
  const auto task = make_list_task("fwe", fixture->context());
  const std::int64_t smallest = task->smallest_length_tokens(1);
  const Sample sample = task->make_sample({smallest, std::nullopt}, 0, 1);
  CHECK(falling(fwe_word_counts(sample)) == std::vector<std::int64_t>{32, 8, 3, 2, 1});
  CHECK(smallest == 46 + 1 + 3);  // words, question, answer
}

TEST_CASE("fwe: the filler leads and the three answers are strictly ahead of all other words", "[tasks][fwe]") {
  const auto fixture = test::synthetic_fixture();
  for (const TaskVariant variant : {TaskVariant::kBalanced, TaskVariant::kRuler}) {
    const auto task = make_list_task("fwe", fixture->context(), variant);
    for (const std::int64_t length : {400, 1000, 4096, 9999}) {
      for (std::int64_t index = 0; index < 3; ++index) {
        INFO(task::to_string(variant) << " " << length << " " << index);
        const Sample sample = task->make_sample({length, std::nullopt}, index, 1);
        Counts counts = fwe_word_counts(sample);
        std::int64_t previous = counts.at("f0");
        counts.erase("f0");
        for (const std::string& reference : sample.references) {
          CHECK(counts.at(reference) < previous);
          previous = counts.at(reference);
          counts.erase(reference);
        }
        for (const auto& each : counts) CHECK(each.second < previous);
      }
    }
  }
}

TEST_CASE("fwe: the list is as long as fits, and in RULER's variant the next size of the grid would not fit",
          "[tasks][fwe]") {
  const auto fixture = test::synthetic_fixture();
  const Sample balanced = make_list_task("fwe", fixture->context())->make_sample({3000, std::nullopt}, 0, 1);
  CHECK(balanced.slack_tokens() <= 8);
  const Sample ruler =
      make_list_task("fwe", fixture->context(), TaskVariant::kRuler)->make_sample({3000, std::nullopt}, 0, 1);
  CHECK(ruler.slack_tokens() <= 3000 / 32);
}

TEST_CASE("fwe: RULER's variant is refused where there are fewer than five words", "[tasks][fwe][errors]") {
  const auto fixture = test::synthetic_fixture();
  const auto task = make_list_task("fwe", fixture->context(), TaskVariant::kRuler);
  CHECK(task->smallest_length_tokens(1) == 300);
  CHECK_THROWS_AS(task->make_sample({299, std::nullopt}, 0, 1), TooShortError);
}
