// Every task, variant and pack (tasks specification 1.7). A new task is covered by its line in tasks.inc.

#include <algorithm>
#include <set>
#include <thread>

#include "harness/core/text_util.h"
#include "harness/scoring/matching.h"
#include "tasks/tasks.h"
#include "tests/support/catch.h"
#include "tests/support/oracle_solver.h"
#include "tests/support/task_fixture.h"

namespace {

using namespace fathom;
using task::Sample;
using task::TaskVariant;

struct TaskCase {
  const task::TaskEntry* entry;
  TaskVariant variant;
};

std::vector<TaskCase> task_cases() {
  std::vector<TaskCase> cases;
  for (const task::TaskEntry& entry : tasks::registry().entries()) {
    cases.push_back({&entry, TaskVariant::kBalanced});
    if (entry.has_ruler_variant) cases.push_back({&entry, TaskVariant::kRuler});
  }
  return cases;
}

std::unique_ptr<task::Task> make_task(const TaskCase& which, const task::TaskContext& context,
                                      OptionSource options = {}) {
  return which.entry->make(*which.entry, which.variant, options, context);
}

std::string case_name(const TaskCase& which, const test::TaskFixture& fixture) {
  return std::string(which.entry->name) + "@" + std::string(task::to_string(which.variant)) + " " + fixture.name();
}

/// The lengths of the suite; those at which keys run out are replaced by the largest feasible one.
std::vector<std::int64_t> feasible_lengths(const task::Task& task, std::int64_t smallest) {
  std::vector<std::int64_t> lengths = {smallest};
  if (!task.sweeps_length()) return lengths;
  for (const std::int64_t length : {std::int64_t{512}, std::int64_t{4096}}) {
    if (length < smallest) continue;
    try {
      task.make_sample({length, std::nullopt}, 0, 1);
      lengths.push_back(length);
    } catch (const task::TooLongError& error) {
      CHECK(error.largest_length_tokens() < length);
      // Other samples may run out earlier than this one.
      const std::int64_t largest = error.largest_length_tokens();
      lengths.push_back(std::min(largest, task.largest_length_tokens(1).value_or(largest)));
    }
  }
  return lengths;
}

std::vector<std::optional<std::int32_t>> depths_of(const task::Task& task) {
  if (!task.sweeps_depth()) return {std::nullopt};
  return {0, 5000, 10000, std::nullopt};
}

template <typename Visit>
void for_each_sample(const Visit& visit) {
  for (const auto& fixture : test::all_task_fixtures()) {
    for (const TaskCase& which : task_cases()) {
      const auto task = make_task(which, fixture->context());
      const std::int64_t smallest = task->smallest_length_tokens(1);
      for (const std::int64_t length : feasible_lengths(*task, smallest)) {
        for (const auto& depth : depths_of(*task)) {
          for (const std::int64_t index : {0, 3}) {
            INFO(case_name(which, *fixture) << " L=" << length << " d=" << depth.value_or(-1) << " i=" << index);
            visit(*fixture, *task, task->make_sample({length, depth}, index, 1));
          }
        }
      }
    }
  }
}

/// Sixteen, or all there are: a document's trade comes from a list of eight, a hiding place from one of twelve.
std::size_t n_candidates(const Sample& sample) {
  if (sample.references.empty()) return 1;
  if (sample.task == "facts") return sample.labels.size();
  if (sample.metric == task::TaskMetric::kEm) return std::clamp<std::size_t>(sample.candidates.size(), 2, 16);
  if (sample.task == "grid" && !sample.whole_words) return 12;
  const bool documents = sample.task == "qa_1" || sample.task == "mdqa";
  return documents && sample.candidates.size() == 8 ? 8 : 16;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

}  // namespace

TEST_CASE("tasks: the largest feasible length is found at once, and is no smaller than the smallest", "[tasks]") {
  for (const auto& fixture : test::all_task_fixtures()) {
    for (const TaskCase& which : task_cases()) {
      INFO(case_name(which, *fixture));
      const auto task = make_task(which, fixture->context());
      const auto largest = task->largest_length_tokens(1);
      if (largest) CHECK(*largest >= task->smallest_length_tokens(1));
    }
  }
}

TEST_CASE("tasks: the oracle solver answers every sample", "[tasks][oracle]") {
  for_each_sample([](const test::TaskFixture&, const task::Task&, const Sample& sample) {
    if (sample.references.empty()) return;  // running text: nothing is answered
    const std::string reply = test::oracle_reply(sample);
    CHECK(test::score_reply(test::main_scorer(sample), sample, reply) == std::optional<double>(1.0));
    // Values can be told from running text where they have a form of their own.
    if (!scoring::infer_answer_form(sample)) return;
    for (const std::string_view scorer : {"ordered", "exact_set", "precision"}) {
      INFO(scorer);
      CHECK(test::score_reply(scorer, sample, reply) == std::optional<double>(1.0));
    }
    CHECK(test::score_reply("extra", sample, reply) == std::optional<double>(0.0));
    CHECK(test::score_reply(test::main_scorer(sample), sample, "") == std::optional<double>(0.0));
  });
}

TEST_CASE("tasks: prompt and budgets stay within the length, and one string gives the ids", "[tasks][fitting]") {
  for_each_sample([](const test::TaskFixture& fixture, const task::Task&, const Sample& sample) {
    CHECK(sample.slack_tokens() >= 0);
    TokenIds ids = fixture.tokenizer().encode(sample.prompt_text);
    if (fixture.tokenizer().adds_bos()) ids.insert(ids.begin(), *fixture.tokenizer().bos());
    CHECK(sample.prompt_ids == ids);
    CHECK(std::count(ids.begin(), ids.end(), fixture.tokenizer().bos().value_or(-1)) <= 1);
    CHECK((sample.generation_budget >= 1) == !sample.references.empty());
  });
}

TEST_CASE("tasks: references stand neither in the question nor, beyond their needle, in the haystack",
          "[tasks][unique]") {
  for_each_sample([](const test::TaskFixture&, const task::Task&, const Sample& sample) {
    const std::set<std::string> different(sample.references.begin(), sample.references.end());
    CHECK(different.size() == sample.references.size());
    // Lists of words and algorithmic inputs are made of the answer, and notes name places again; their own tests look
    // closer.
    if (sample.task == "cwe" || sample.task == "fwe" || sample.task == "facts") return;
    if (sample.metric == task::TaskMetric::kEm) return;
    const std::string padded = " " + replace_all(sample.prompt_text, "\n", " ") + " ";
    for (std::size_t i = 0; i < sample.references.size(); ++i) {
      const std::string wanted = sample.whole_words ? " " + sample.references[i] + " " : sample.references[i];
      // A code is said twice. A variable is set once and copied once, except for the last of the chain.
      const bool twice = sample.task == "passkey" || (sample.task == "vt" && i + 1 < sample.references.size());
      const std::size_t expected = twice ? 2 : 1;
      CHECK(count_of(padded, wanted) == expected);
    }
  });
}

TEST_CASE("tasks: candidates are the right answer and others, all different", "[tasks][candidates]") {
  for_each_sample([](const test::TaskFixture&, const task::Task&, const Sample& sample) {
    REQUIRE(!sample.candidates.empty());
    CHECK(sample.candidates.front() == sample.answer_text);
    CHECK(sample.candidates.size() == n_candidates(sample));
    const std::set<std::string> different(sample.candidates.begin(), sample.candidates.end());
    CHECK(different.size() == sample.candidates.size());
  });
}

TEST_CASE("tasks: needles stand at their token positions, within one unit of the depth asked for",
          "[tasks][placement]") {
  for_each_sample([](const test::TaskFixture& fixture, const task::Task& task, const Sample& sample) {
    if (sample.needles.empty()) {
      CHECK(!task.sweeps_depth());
      CHECK(sample.metric == task.metric());
      return;
    }
    std::int64_t previous = -1;
    for (const task::NeedlePlace& needle : sample.needles) {
      CHECK(needle.first_token > previous);
      CHECK(needle.last_token >= needle.first_token);
      CHECK(needle.last_token < sample.prompt_tokens());
      previous = needle.first_token;
    }
    std::string gold;
    for (const task::NeedlePlace& needle : sample.needles) {
      if (!needle.gold) continue;
      gold += fixture.tokenizer().decode(
          {sample.prompt_ids.begin() + needle.first_token, sample.prompt_ids.begin() + needle.last_token + 1});
      gold += ' ';
    }
    for (const std::string& reference : sample.references) CHECK(gold.find(reference) != std::string::npos);
    // In kv and mdqa the depth is that of the index among the pairs or documents.
    if (!task.sweeps_depth() || !sample.depth_bp || sample.task == "kv" || sample.task == "mdqa") return;
    for (const task::NeedlePlace& needle : sample.needles) {
      if (!needle.gold) continue;
      CHECK(needle.requested_depth_bp == sample.depth_bp);
      CHECK(std::abs(needle.actual_depth_bp - *sample.depth_bp) <= kDepthScale / sample.haystack_units + 1);
    }
  });
}

TEST_CASE("tasks: the smallest length builds, one token less is refused with that number", "[tasks][fitting]") {
  for (const auto& fixture : test::all_task_fixtures()) {
    fixture->context().n_samples = 3;
    for (const TaskCase& which : task_cases()) {
      INFO(case_name(which, *fixture));
      const auto task = make_task(which, fixture->context());
      if (!task->sweeps_length()) continue;
      const std::int64_t smallest = task->smallest_length_tokens(5);
      std::optional<std::int32_t> depth;
      int refused = 0;
      for (std::int64_t index = 0; index < 3; ++index) {
        for (const std::int32_t bp : {0, 10000}) {
          if (task->sweeps_depth()) depth = bp;
          CHECK(task->make_sample({smallest, depth}, index, 5).slack_tokens() >= 0);
          try {
            task->make_sample({smallest - 1, depth}, index, 5);
          } catch (const TooShortError& error) {
            ++refused;
            CHECK(error.smallest_length_tokens() == smallest);
            const std::string message = error.what();
            CHECK(starts_with(message, std::string(which.entry->name) + ": length " + std::to_string(smallest - 1) +
                                           " is too short: prompt "));
            CHECK(ends_with(message, " tokens; smallest feasible length here is " + std::to_string(smallest)));
          }
        }
      }
      CHECK(refused > 0);
    }
  }
}

TEST_CASE("tasks: the same key gives the same bytes, whatever ran before and on whichever thread",
          "[tasks][determinism]") {
  const auto fixture = test::english_fixture();
  for (const TaskCase& which : task_cases()) {
    INFO(which.entry->name);
    const auto first = make_task(which, fixture->context());
    std::optional<std::int32_t> depth;
    if (first->sweeps_depth()) depth = 5000;
    const std::int64_t length = std::max<std::int64_t>(4096, first->smallest_length_tokens(9));
    std::vector<Sample> forwards;
    for (std::int64_t i = 0; i < 6; ++i) forwards.push_back(first->make_sample({length, depth}, i, 9));

    const auto second = make_task(which, fixture->context());
    second->make_sample({length + 777, depth}, 2, 9);
    std::vector<Sample> backwards(6);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        for (std::size_t i = 6; i-- > 0;) {
          if (i % 3 == t) backwards[i] = second->make_sample({length, depth}, static_cast<std::int64_t>(i), 9);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::set<std::string> prompts;
    for (std::size_t i = 0; i < 6; ++i) {
      CHECK(forwards[i].prompt_text == backwards[i].prompt_text);
      CHECK(forwards[i].prompt_ids == backwards[i].prompt_ids);
      CHECK(forwards[i].address == backwards[i].address);
      CHECK(forwards[i].candidates == backwards[i].candidates);
      prompts.insert(forwards[i].prompt_text);
    }
    CHECK(prompts.size() == 6);
    CHECK(first->make_sample({length, depth}, 0, 10).prompt_text != forwards[0].prompt_text);
  }
}

TEST_CASE("tasks: one sample has one haystack over all depths, and a prefix of it over all lengths",
          "[tasks][pairing]") {
  const auto fixture = test::english_fixture();
  for (const std::string_view name : {"niah_single_1", "niah_single_2", "niah_multikey_2", "kv"}) {
    INFO(name);
    const task::TaskEntry& entry = tasks::registry().at(name);
    const auto task = make_task({&entry, TaskVariant::kBalanced}, fixture->context());
    const Sample deep = task->make_sample({4096, 10000}, 1, 1);
    const Sample middle = task->make_sample({4096, 5000}, 1, 1);
    const Sample longer = task->make_sample({6000, 10000}, 1, 1);
    if (name != "kv") {
      CHECK(deep.references == middle.references);
      CHECK(deep.references == longer.references);
    }
    const auto common = [](const TokenIds& a, const TokenIds& b) {
      return std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size())), b.begin())
                 .first -
             a.begin();
    };
    CHECK(common(deep.prompt_ids, longer.prompt_ids) > 3500);
    CHECK(common(deep.prompt_ids, middle.prompt_ids) > 1700);
  }
}

TEST_CASE("tasks: names, groups and variants expand as the specification says", "[tasks][names]") {
  const auto full = [](std::string_view name) {
    std::string text;
    for (const task::TaskName& each : tasks::expand_task_name(name)) text += each.full() + " ";
    return text;
  };
  CHECK(full("niah_single_2") == "niah_single_2@balanced ");
  CHECK(full("niah_single_2@ruler") == "niah_single_2@ruler ");
  CHECK(full("niah_single") == "niah_single_1@balanced niah_single_2@balanced niah_single_3@balanced ");
  CHECK(full("variable_tracking") == "vt@balanced ");
  CHECK(full("variable_tracking@ruler") == "vt@ruler ");
  CHECK(full("lost_in_the_middle") == "kv@balanced mdqa@balanced ");
  CHECK(full("ruler").find("kv") == std::string::npos);
  CHECK(full("ruler") ==
        "cwe@ruler fwe@ruler niah_multikey_1@ruler niah_multikey_2@ruler niah_multikey_3@ruler niah_multiquery@ruler "
        "niah_multivalue@ruler niah_single_1@ruler niah_single_2@ruler niah_single_3@ruler qa_1@ruler qa_2@ruler "
        "vt@ruler ");
  CHECK(starts_with(full("ruler@balanced"), "cwe@balanced "));
  CHECK(full("common_words") + full("frequent_words") == "cwe@balanced fwe@balanced ");

  const auto message = [](std::string_view name) -> std::string {
    try {
      tasks::expand_task_name(name);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK(starts_with(message("niah_singel_2"),
                    "unknown task or group 'niah_singel_2'; did you mean 'niah_single_2'? known: add, "));
  CHECK(message("kv@ruler") == "task 'kv' has no variant 'ruler'; it has balanced");
  CHECK(message("vt@rular") == "unknown variant 'rular' of task 'vt'; known: balanced, ruler");
}

TEST_CASE("tasks: an unknown or bad option is an error that names it", "[tasks][errors]") {
  const auto fixture = test::english_fixture();
  for (const TaskCase& which : task_cases()) {
    INFO(which.entry->name);
    try {
      make_task(which, fixture->context(), OptionSource("[task.x]", {{"no_such_option", "1"}}));
      FAIL("no error");
    } catch (const ConfigError& error) {
      CHECK(std::string(error.what()).find("no_such_option") != std::string::npos);
    }
    CHECK(!which.entry->describe().empty());
    CHECK(!which.entry->summary.empty());
  }
}
