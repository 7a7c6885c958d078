// Chance levels: what is stated for a task is what a guesser gets.

#include <cmath>

#include "harness/core/stats.h"
#include "tasks/tasks.h"
#include "tests/support/catch.h"
#include "tests/support/oracle_solver.h"
#include "tests/support/task_fixture.h"

namespace {

using namespace fathom;

constexpr std::int64_t kGuessSamples = 2000;

struct GuessCase {
  std::string_view task;
  std::map<std::string, std::string> options;
};

/// Mean score of a guesser and three standard errors.
struct Guessed {
  double mean;
  double tolerance;
};

template <typename Reply>
Guessed run_guesser(const task::Task& task, std::int64_t length, std::int64_t n, const Reply& reply) {
  std::vector<double> scores;
  RngStream rng(RngKey("guesser"));
  for (std::int64_t i = 0; i < n; ++i) {
    const task::Sample sample = task.make_sample({length, std::nullopt}, i, 3);
    scores.push_back(test::score_reply(test::main_scorer(sample), sample, reply(sample, rng)).value());
  }
  return {mean(scores).value(), 3 * standard_error(scores).value()};
}

}  // namespace

TEST_CASE("tasks: a guesser who names values in sight scores the stated in-text guess", "[tasks][guess][slow]") {
  const auto fixture = test::synthetic_fixture();
  const std::vector<GuessCase> cases = {{"assoc", {}},
                                        {"assoc", {{"distractors", "5"}}},
                                        {"facts", {}},
                                        {"niah_single_1", {}},
                                        {"niah_single_2", {}},
                                        {"niah_single_2", {{"extra_keys", "3"}}},
                                        {"niah_single_3", {{"extra_keys", "2"}}},
                                        {"niah_multikey_1", {}},
                                        {"niah_multikey_2", {}},
                                        {"niah_multikey_3", {}},
                                        {"niah_multivalue", {}},
                                        {"niah_multivalue", {{"extra_keys", "1"}}},
                                        {"niah_multiquery", {}},
                                        {"cwe", {}},
                                        {"fwe", {}},
                                        {"grid", {}},
                                        {"kv", {}},
                                        {"mdqa", {}},
                                        {"passkey", {}},
                                        {"qa_1", {}},
                                        {"qa_2", {}},
                                        {"vt", {}},
                                        {"vt", {{"chains", "4"}}}};
  for (const GuessCase& each : cases) {
    const task::TaskEntry& entry = tasks::registry().at(each.task);
    const auto task =
        entry.make(entry, task::TaskVariant::kBalanced, OptionSource("[task]", each.options), fixture->context());
    const std::int64_t length = std::max<std::int64_t>(128, task->smallest_length_tokens(3) + 20);
    INFO(each.task << " L=" << length);
    const Guessed guessed = run_guesser(*task, length, kGuessSamples, test::in_text_guess_reply);
    INFO("mean " << guessed.mean << " stated " << task->in_text_guess(length));
    CHECK(std::abs(guessed.mean - task->in_text_guess(length)) <= guessed.tolerance + 1e-12);
  }
}

TEST_CASE("tasks: a blind guesser scores the stated chance", "[tasks][guess][slow]") {
  const auto fixture = test::synthetic_fixture();
  for (const task::TaskEntry& entry : tasks::registry().entries()) {
    const auto task = entry.make(entry, task::TaskVariant::kBalanced, {}, fixture->context());
    if (task->metric() == task::TaskMetric::kTop1) continue;
    // Series have practically endless answers, of which the candidates are no fair draw.
    if (task->metric() == task::TaskMetric::kEm && task->blind_guess() == 0) continue;
    const std::int64_t length = task->smallest_length_tokens(3) + 20;
    INFO(entry.name << " L=" << length << " stated " << task->blind_guess());
    const Guessed guessed = run_guesser(*task, length, 1000, test::blind_guess_reply);
    CHECK(std::abs(guessed.mean - task->blind_guess()) <= guessed.tolerance + 1e-3);
    // Closed sets of answers apart, blind guessing does not pay.
    if (task->metric() != task::TaskMetric::kEm && entry.name != "facts") CHECK(guessed.mean <= 0.04);
  }
}
