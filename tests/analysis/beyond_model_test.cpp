#include "harness/analysis/beyond_model.h"

#include "tests/support/catch.h"

using fathom::analysis::beyond_model;
using fathom::analysis::fails_facts_alone;
using fathom::analysis::fails_without_control;
using fathom::analysis::ScorePoint;
using fathom::store::ControlRow;

namespace {

ControlRow control_row(const char* control, std::int64_t length_tokens, std::int64_t n_samples, double mean) {
  ControlRow row;
  row.control = control;
  row.length_tokens = length_tokens;
  row.n_samples = n_samples;
  row.mean = mean;
  return row;
}

}  // namespace

TEST_CASE("beyond model: the facts alone decide, by the interval's upper end", "[analysis][beyond_model]") {
  // Wilson, 95 %: 15 of 20 reaches 88.8 %, 14 of 20 only 85.5 %.
  CHECK_FALSE(fails_facts_alone({control_row("needle_only", 512, 20, 0.75)}, 0, 0, 85.6));
  CHECK(fails_facts_alone({control_row("needle_only", 512, 20, 0.70)}, 0, 0, 85.6));
  CHECK(fails_facts_alone({control_row("oracle", 512, 20, 0.0)}, 0, 0, 85.6));
  CHECK_FALSE(fails_facts_alone({control_row("oracle", 512, 20, 0.70)}, 0, 0, 80));
}

TEST_CASE("beyond model: a single length at which the facts suffice is enough", "[analysis][beyond_model]") {
  CHECK_FALSE(fails_facts_alone({control_row("needle_only", 512, 50, 1.0), control_row("needle_only", 1024, 50, 0.1)},
                                0, 0, 85.6));
}

TEST_CASE("beyond model: without such a control nothing is said", "[analysis][beyond_model]") {
  CHECK_FALSE(fails_facts_alone({}, 0, 0, 85.6));
  CHECK_FALSE(
      fails_facts_alone({control_row("no_needle", 512, 50, 0), control_row("closed_book", 512, 50, 0)}, 0, 0, 85.6));
  CHECK_FALSE(fails_facts_alone({control_row("needle_only", 512, 0, 0)}, 0, 0, 85.6));
  ControlRow other_task = control_row("needle_only", 512, 50, 0);
  other_task.task = 1;
  CHECK_FALSE(fails_facts_alone({other_task}, 0, 0, 85.6));
  CHECK(fails_facts_alone({other_task}, 0, 1, 85.6));
}

TEST_CASE("beyond model: what may pass in full is within the model, whatever the facts alone bring",
          "[analysis][beyond_model]") {
  const std::vector<ControlRow> fails = {control_row("needle_only", 512, 50, 0.5)};
  ScorePoint point;
  point.length_tokens = 512;
  point.mean = 0.80;
  point.high = 0.84;
  CHECK(beyond_model(fails, 0, 0, {point}, 85.6));
  CHECK(beyond_model(fails, 0, 0, {}, 85.6));
  point.high = 0.95;
  CHECK_FALSE(beyond_model(fails, 0, 0, {point}, 85.6));
  CHECK_FALSE(beyond_model({}, 0, 0, {}, 85.6));
}

TEST_CASE("beyond model: a task without a control is told apart where the run asked for controls",
          "[analysis][beyond_model]") {
  const std::vector<ControlRow> of_task_0 = {control_row("needle_only", 512, 20, 1.0)};
  ScorePoint low;
  low.length_tokens = 1024;
  low.mean = 0.02;
  low.high = 0.06;
  ScorePoint high = low;
  high.high = 0.9;
  CHECK(fails_without_control(of_task_0, 0, 1, {low}, 85.6));
  CHECK_FALSE(fails_without_control(of_task_0, 0, 1, {low, high}, 85.6));  // one length may pass
  CHECK_FALSE(fails_without_control(of_task_0, 0, 0, {low}, 85.6));        // this one has a control
  CHECK_FALSE(fails_without_control(of_task_0, 1, 1, {low}, 85.6));        // another variant's
  CHECK_FALSE(fails_without_control({control_row("no_needle", 512, 20, 0)}, 0, 1, {low}, 85.6));
  CHECK_FALSE(fails_without_control({}, 0, 1, {low}, 85.6));
  CHECK_FALSE(fails_without_control(of_task_0, 0, 1, {}, 85.6));  // nothing was asked
}
