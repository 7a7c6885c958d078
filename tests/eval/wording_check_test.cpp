// The wording check: which tasks a model understands with the facts alone.

#include "harness/eval/wording_check.h"

#include "tasks/tasks.h"
#include "tests/support/catch.h"
#include "tests/support/fake_language_model.h"
#include "tests/support/oracle_solver.h"
#include "tests/support/task_fixture.h"

namespace {

using namespace fathom;
using Catch::Matchers::WithinAbs;

eval::WordingRow row_of(const std::vector<double>& alone) {
  eval::WordingRow row;
  row.control = "needle_only";
  row.alone = eval::wording_score(alone, 0);
  return row;
}

}  // namespace

TEST_CASE("wording check: intervals are Wilson's for 0/1 scores and of a bootstrap else", "[eval][wording]") {
  const eval::WordingScore nine = eval::wording_score({1, 1, 1, 1, 1, 1, 1, 1, 1, 0}, 0);
  CHECK_THAT(nine.mean, WithinAbs(0.9, 1e-12));
  CHECK_THAT(nine.interval.low, WithinAbs(0.596, 5e-4));
  CHECK_THAT(nine.interval.high, WithinAbs(0.982, 5e-4));
  const eval::WordingScore halves = eval::wording_score(std::vector<double>(20, 0.5), 3);
  CHECK(halves.interval.low == 0.5);
  CHECK(halves.interval.high == 0.5);
  CHECK(halves.n_failed == 3);
  CHECK(eval::wording_score({}, 2).n == 0);
}

TEST_CASE("wording check: beyond the model is what cannot reach the threshold with the facts alone",
          "[eval][wording]") {
  CHECK(eval::wording_verdict(row_of(std::vector<double>(20, 0)), 85.6) == "beyond this model");
  // 10 of 20: .30 to .70.
  std::vector<double> half(20, 0);
  std::fill(half.begin(), half.begin() + 10, 1.0);
  CHECK(eval::wording_verdict(row_of(half), 85.6) == "beyond this model");
  CHECK(eval::wording_verdict(row_of(half), 60) == "measurable");
  CHECK(eval::wording_verdict(row_of(std::vector<double>(20, 1)), 85.6) == "measurable");
  CHECK(eval::wording_verdict({}, 85.6) == "no control");
  // Needles side by side confuse some models that find one in prose.
  eval::WordingRow found_in_prose = row_of(half);
  found_in_prose.full = eval::wording_score(std::vector<double>(20, 1), 0);
  CHECK(eval::wording_verdict(found_in_prose, 85.6) == "measurable");
}

TEST_CASE("wording check: only the wanted controls are planned, and full and alone are kept apart", "[eval][wording]") {
  const auto fixture = test::synthetic_fixture();
  const task::TaskEntry& entry = tasks::registry().at("niah_single_2");
  const auto task = entry.make(entry, task::TaskVariant::kBalanced, {}, fixture->context());
  eval::SweepPlan plan;
  plan.tasks = {{{"niah_single_2", task::TaskVariant::kBalanced}, task.get(), {96}, {}}};
  plan.n_samples = 6;
  plan.seed = 1;
  plan.controls = true;
  plan.only_controls = {task::Control::kNeedleOnly, task::Control::kOracle};
  plan.control_samples = 6;
  const eval::WorkList work = eval::make_work_list(plan);
  CHECK(work.n_samples == 12);
  // Right whenever the prompt is short, which it is with the needle alone.
  test::FakeLanguageModel model([&](const lm::Request& request) {
    lm::Completion completion;
    if (request.prompt.size() < 40) {
      const std::string text = fixture->tokenizer().decode(request.prompt);
      completion.ids = fixture->tokenizer().encode(test::words_of(text).at(2));
    }
    return completion;
  });
  test::FakeModelProvider provider(model);
  test::MemorySink kept;
  eval::WordingSink sink(&kept);
  eval::EvalOptions options;
  options.graded = false;
  eval::evaluate(plan, provider, *fixture->context().assembler, {}, sink, options);
  REQUIRE(sink.rows().size() == 1);
  const eval::WordingRow row = sink.rows()[0];
  CHECK(row.task == "niah_single_2");
  CHECK(row.control == "needle_only");
  REQUIRE(row.alone.has_value());
  CHECK(row.alone->n == 6);
  CHECK(row.alone->mean == 1.0);
  CHECK(row.full.n == 6);
  CHECK(row.full.mean == 0.0);
  CHECK(kept.rows.size() == 12);
}
