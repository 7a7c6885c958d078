#include "harness/analysis/run_summary.h"

#include "harness/core/error.h"
#include "harness/core/stats.h"
#include "harness/store/result_store.h"
#include "tests/support/catch.h"
#include "tests/support/made_up_run.h"
#include "tests/support/temp_folder.h"

namespace fathom::analysis {
namespace {

using Catch::Matchers::WithinAbs;

/// A database of one run of one variant "rope", trained on 512 tokens.
class OneRun {
 public:
  OneRun() : path_(folder_.file("results.db")), sink_(store::open_store(path_)) {
    sink_->begin_run(test::made_up_run_record("run"));
    sink_->put_variant(test::made_up_variant("rope"));
  }

  /// n samples of which the first n_right score 1.
  void put(const test::MadeUpCell& cell, int n_right, int n) {
    std::vector<eval::SampleRecord> rows;
    for (int i = 0; i < n; ++i) rows.push_back(test::made_up_sample("rope", cell, i, i < n_right ? 1.0 : 0.0));
    sink_->put_batch(rows);
  }

  eval::ResultSink& sink() { return *sink_; }

  RunSummary summary(const SummarySettings& settings = {}) const {
    return summarise_run(*store::open_reader(path_), "run", settings);
  }

 private:
  test::TempFolder folder_;
  std::string path_;
  std::unique_ptr<eval::ResultSink> sink_;
};

}  // namespace

TEST_CASE("run_summary: a 0/1 score a sample has a Wilson interval", "[analysis][summary]") {
  OneRun run;
  run.put({"niah_single_2", 128, std::nullopt}, 9, 10);
  const RunSummary summary = run.summary();
  REQUIRE(summary.tasks.size() == 1);
  CHECK(summary.tasks[0].label == "niah_single_2");
  const ScorePoint& point = summary.variants[0].tasks[0].curve.at(0);
  CHECK(point.estimator == Estimator::kWilson);
  CHECK_THAT(point.mean.value(), WithinAbs(0.9, 1e-12));
  CHECK_THAT(point.low.value(), WithinAbs(0.596, 5e-4));
  CHECK_THAT(point.high.value(), WithinAbs(0.982, 5e-4));
  // With one task the mean over tasks is that task.
  CHECK(summary.variants[0].mean_curve.at(0).estimator == Estimator::kWilson);
  CHECK(summary.variants[0].tasks[0].sweeps_depth == false);
}

TEST_CASE("run_summary: depths of one sample are no independent values", "[analysis][summary]") {
  OneRun run;
  for (int depth = 0; depth <= 10000; depth += 1000) run.put({"niah_single_2", 128, depth}, 8, 10);
  const ScorePoint point = run.summary().variants[0].tasks[0].curve.at(0);
  CHECK(point.estimator == Estimator::kBootstrap);
  CHECK(point.n_samples == 10);
  CHECK(point.n_values == 110);
  // Ten clusters of equal values: as wide as 8 of 10, not as 88 of 110.
  CHECK(point.low.value() < 0.6);
  CHECK(point.high.value() == 1.0);
  CHECK(run.summary().variants[0].tasks[0].cells.size() == 11);
  CHECK(run.summary().variants[0].tasks[0].cells[3].depth_bp == std::optional<std::int32_t>(3000));
}

TEST_CASE("run_summary: all right is not certain, and its width follows the clustering of the curve",
          "[analysis][summary]") {
  OneRun run;
  for (int depth = 0; depth <= 10000; depth += 1000) {
    run.put({"niah_single_2", 128, depth}, 10, 10);
    run.put({"niah_single_2", 256, depth}, 8, 10);
  }
  const auto curve = run.summary().variants[0].tasks[0].curve;
  CHECK(curve[0].estimator == Estimator::kWilsonClustered);
  // Every sample is all right or all wrong at 256 tokens: 110 values are worth 9 samples.
  CHECK_THAT(curve[0].n_independent, WithinAbs(9, 0.01));
  CHECK_THAT(curve[0].low.value(), WithinAbs(wilson_interval(9, 9).low, 1e-9));

  OneRun independent;
  for (int depth = 0; depth <= 10000; depth += 1000) independent.put({"niah_single_2", 128, depth}, 10, 10);
  CHECK_THAT(independent.summary().variants[0].tasks[0].curve[0].low.value(),
             WithinAbs(wilson_interval(110, 110).low, 1e-9));
}

TEST_CASE("run_summary: few fractional scores have no interval", "[analysis][summary]") {
  OneRun run;
  std::vector<eval::SampleRecord> rows;
  for (int i = 0; i < 10; ++i) {
    rows.push_back(test::made_up_sample("rope", {"vt", 128, std::nullopt}, i, 1.0));
    rows.push_back(test::made_up_sample("rope", {"vt", 256, std::nullopt}, i, 0.2 * (i % 6)));
  }
  run.sink().put_batch(rows);
  const auto curve = run.summary().variants[0].tasks[0].curve;
  CHECK(curve[0].estimator == Estimator::kNone);
  CHECK_FALSE(curve[0].low.has_value());
  CHECK(curve[1].estimator == Estimator::kNone);
}

TEST_CASE("run_summary: the only cell of a length is the point of the curve, interval and all", "[analysis][summary]") {
  OneRun run;
  std::vector<eval::SampleRecord> rows;
  for (int i = 0; i < 20; ++i) {
    for (const std::int64_t length : {128, 256}) {
      rows.push_back(test::made_up_sample("rope", {"fwe", length, std::nullopt}, i, (i * 7) % 4 / 3.0));
      rows.push_back(test::made_up_sample("rope", {"vt", length, 5000}, i, (i * 5) % 6 / 5.0));
    }
  }
  run.sink().put_batch(rows);
  const RunSummary summary = run.summary();
  for (const TaskResult& task : summary.variants[0].tasks) {
    REQUIRE(task.cells.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK(task.cells[i].estimator == Estimator::kBootstrap);
      CHECK(task.cells[i].low == task.curve[i].low);
      CHECK(task.cells[i].high == task.curve[i].high);
    }
    CHECK(task.cells[0].depth_bp.has_value() == task.sweeps_depth);
  }
}

TEST_CASE("run_summary: equal fractional scores are not certain either", "[analysis][summary]") {
  OneRun run;
  std::vector<eval::SampleRecord> rows;
  for (int i = 0; i < 20; ++i) {
    rows.push_back(test::made_up_sample("rope", {"vt", 128, std::nullopt}, i, 0.25));
    rows.push_back(test::made_up_sample("rope", {"vt", 256, std::nullopt}, i, i % 2 * 0.5));
  }
  run.sink().put_batch(rows);
  const auto curve = run.summary().variants[0].tasks[0].curve;
  CHECK(curve[0].estimator == Estimator::kWilsonClustered);
  // Wilson of 5 in 20.
  CHECK_THAT(curve[0].low.value(), WithinAbs(0.1119, 5e-5));
  CHECK_THAT(curve[0].high.value(), WithinAbs(0.4687, 5e-5));
  CHECK(curve[1].estimator == Estimator::kBootstrap);
}

TEST_CASE("run_summary: a task that fails with the facts alone is marked", "[analysis][summary]") {
  OneRun run;
  run.put({"niah_single_2", 128, std::nullopt}, 2, 20);
  run.put({"vt", 128, std::nullopt}, 2, 20);
  std::vector<eval::SampleRecord> alone;
  for (int i = 0; i < 20; ++i) {
    for (const char* task : {"niah_single_2", "vt"}) {
      const bool solved = task == std::string("niah_single_2");
      alone.push_back(test::made_up_sample("rope", {task, 128, std::nullopt}, i, solved ? 1.0 : 0.0));
      alone.back().control = "needle_only";
      alone.back().result_key += "|control";
    }
  }
  run.sink().put_batch(alone);
  const RunSummary summary = run.summary();
  REQUIRE(summary.tasks.size() == 2);
  CHECK(summary.tasks[1].label == "vt");
  CHECK_FALSE(summary.variants[0].tasks[0].beyond_model);
  CHECK(summary.variants[0].tasks[1].beyond_model);
  CHECK_THAT(summary.variants[0].tasks[1].curve.at(0).mean.value(), WithinAbs(0.1, 1e-12));
}

TEST_CASE("run_summary: more than one failure in a hundred makes a length unscored", "[analysis][summary]") {
  for (const int n_failed : {1, 2}) {
    OneRun run;
    run.put({"niah_single_2", 128, std::nullopt}, 100, 100);
    run.put({"niah_single_2", 256, std::nullopt}, 100, 100);
    std::vector<eval::SampleRecord> failed;
    for (int i = 0; i < n_failed; ++i) {
      failed.push_back(test::made_up_sample("rope", {"niah_single_2", 256, std::nullopt}, i, std::nullopt));
      failed.back().status = eval::SampleStatus::kEngineError;
    }
    run.sink().put_batch(failed);
    const RunSummary summary = run.summary();
    CHECK(summary.n_failed == n_failed);
    CHECK(summary.variants[0].tasks[0].curve[1].n_failed == n_failed);
    CHECK(format_effective(summary.variants[0].mean.absolute) == (n_failed == 1 ? ">=256" : "128"));
  }
}

TEST_CASE("run_summary: too short lengths are dropped, other unbuilt ones are gaps", "[analysis][summary]") {
  OneRun run;
  for (const std::int64_t length : {256, 512}) {
    run.put({"niah_single_2", length, std::nullopt}, 10, 10);
    run.put({"vt", length, std::nullopt}, 10, 10);
  }
  run.put({"niah_single_2", 128, std::nullopt}, 10, 10);
  using eval::SampleStatus;
  run.sink().put_cells(
      {{"rope", {"vt", task::TaskVariant::kBalanced}, 128, std::nullopt, SampleStatus::kTooShort, "", 200}});
  CHECK(format_effective(run.summary().variants[0].mean.absolute) == ">=512");
  CHECK(run.summary().variants[0].mean.absolute.notes ==
        std::vector<std::string>{"128 left out: not every task can be built there"});
  CHECK(run.summary().lengths == std::vector<std::int64_t>{128, 256, 512});

  run.sink().put_cells({{"rope",
                         {"vt", task::TaskVariant::kBalanced},
                         1024,
                         std::nullopt,
                         SampleStatus::kOutOfMemory,
                         "",
                         std::nullopt}});
  run.put({"niah_single_2", 1024, std::nullopt}, 10, 10);
  const RunSummary summary = run.summary();
  CHECK(format_effective(summary.variants[0].mean.absolute) == "512");
  CHECK(format_effective(summary.variants[0].tasks[1].effective.absolute) == "512");
  CHECK(format_effective(summary.variants[0].tasks[0].effective.absolute) == ">=1024");
  CHECK(summary.variants[0].unbuilt.size() == 2);
  CHECK(summary.variants[0].tasks[1].effective.absolute.notes ==
        std::vector<std::string>{"gap at 1024 (oom: out of memory)"});
  CHECK(summary.variants[0].mean.absolute.notes ==
        std::vector<std::string>{"gap at 1024 (vt: oom: out of memory)",
                                 "128 left out: not every task can be built there"});

  // A later try that succeeds is no gap any more.
  run.put({"vt", 1024, std::nullopt}, 10, 10);
  CHECK(format_effective(run.summary().variants[0].mean.absolute) == ">=1024");
  CHECK(run.summary().variants[0].unbuilt.size() == 1);
}

TEST_CASE("run_summary: a task without results at a length leaves the mean unscored there", "[analysis][summary]") {
  OneRun run;
  run.put({"niah_single_2", 128, std::nullopt}, 10, 10);
  run.put({"niah_single_2", 256, std::nullopt}, 10, 10);
  run.put({"vt", 128, std::nullopt}, 10, 10);
  const RunSummary summary = run.summary();
  CHECK(format_effective(summary.variants[0].mean.absolute) == "128");
  CHECK(summary.variants[0].mean.absolute.notes == std::vector<std::string>{"gap at 256 (vt: no results)"});
  CHECK(summary.variants[0].mean_curve.size() == 1);
}

TEST_CASE("run_summary: a gap says why, once where all tasks have the same reason", "[analysis][summary]") {
  OneRun run;
  for (const char* task : {"niah_single_2", "vt"}) {
    run.put({task, 128, std::nullopt}, 10, 10);
    std::vector<eval::SampleRecord> rows;
    for (std::int64_t i = 0; i < 10; ++i) {
      rows.push_back(test::made_up_sample("rope", {task, 256, std::nullopt}, i, std::nullopt));
      rows.back().status = eval::SampleStatus::kNoPosition;
    }
    run.sink().put_batch(rows);
  }
  CHECK(run.summary().variants[0].mean.absolute.notes ==
        std::vector<std::string>{"gap at 256 (no_position: the model's position table ends before)"});

  run.put({"vt", 256, std::nullopt}, 9, 9);  // the tenth stays as it is
  CHECK(run.summary().variants[0].mean.absolute.notes ==
        std::vector<std::string>{"gap at 256 (niah_single_2: no_position: the model's position table ends before; vt: "
                                 "1 of 10 no_position)"});
}

TEST_CASE("run_summary: the base of the relative rule lies within the trained length", "[analysis][summary]") {
  OneRun run;  // trained on 512
  run.put({"niah_single_2", 512, std::nullopt}, 60, 100);
  run.put({"niah_single_2", 1024, std::nullopt}, 100, 100);
  run.put({"niah_single_2", 2048, std::nullopt}, 52, 100);
  CHECK_THAT(run.summary().variants[0].mean.base_score.value(), WithinAbs(60, 1e-9));
  CHECK(format_effective(run.summary().variants[0].mean.relative) == ">=2048");
  SummarySettings settings;
  settings.base_lengths = {"1x", "2x"};
  CHECK_THAT(run.summary(settings).variants[0].mean.base_score.value(), WithinAbs(100, 1e-9));
}

TEST_CASE("run_summary: which effective contexts are asked for", "[analysis][summary]") {
  OneRun run;
  run.put({"niah_single_2", 128, std::nullopt}, 10, 10);
  run.put({"vt", 128, std::nullopt}, 10, 10);
  SummarySettings settings;
  CHECK(run.summary(settings).shows_mean());
  CHECK(run.summary(settings).shows_task(1));
  settings.effective = {"vt"};
  CHECK_FALSE(run.summary(settings).shows_mean());
  CHECK_FALSE(run.summary(settings).shows_task(0));
  CHECK(run.summary(settings).shows_task(1));
  config::ReportSection section;
  section.threshold = 70;
  section.base_lengths = {"128", "256"};
  CHECK(summary_settings(section).absolute_threshold == 70);
  CHECK(summary_settings(section).base_lengths == section.base_lengths);
}

TEST_CASE("run_summary: tasks named instead of the mean are what the summary is of", "[analysis][summary]") {
  OneRun run;
  run.put({"niah_single_2", 256, std::nullopt}, 10, 10);
  run.put({"vt", 256, std::nullopt}, 6, 10);
  SummarySettings settings;
  const auto mean_of = [&](const std::vector<std::string>& effective) {
    settings.effective = effective;
    return run.summary(settings).variants[0].mean_curve.at(0).mean.value();
  };
  CHECK_THAT(mean_of({"each", "mean"}), WithinAbs(0.8, 1e-12));
  CHECK(run.summary(settings).headline_tasks.empty());
  CHECK_THAT(mean_of({"each", "vt"}), WithinAbs(0.6, 1e-12));
  CHECK(run.summary(settings).headline_tasks == std::vector<std::string>{"vt"});
  CHECK_THAT(mean_of({"mean", "vt"}), WithinAbs(0.8, 1e-12));
  CHECK_THAT(mean_of({"niah_single_2", "vt"}), WithinAbs(0.8, 1e-12));
  CHECK_THAT(mean_of({"each"}), WithinAbs(0.8, 1e-12));
}

TEST_CASE("run_summary: misses are kept to a number a page can hold", "[analysis][summary]") {
  OneRun run;
  for (int depth = 0; depth < 10000; depth += 25) run.put({"niah_single_2", 128, depth}, 0, 5);
  const RunSummary summary = run.summary();
  CHECK(summary.misses_thinned);
  CHECK(summary.misses_per_cell == 3);
  CHECK(summary.misses.size() == 1200);
}

TEST_CASE("run_summary: a run without results, and one that is not there", "[analysis][summary]") {
  const OneRun run;
  const RunSummary summary = run.summary();
  CHECK(summary.variants.size() == 1);
  CHECK(summary.tasks.empty());
  CHECK(summary.n_values == 0);
  CHECK(summary.variants[0].mean.absolute.kind == Censoring::kNone);
}

TEST_CASE("run_summary: tasks with sizes of their own are no part of the mean", "[analysis][summary]") {
  OneRun run;
  for (const std::int64_t length : {128, 256}) {
    run.put({"niah_single_2", length, std::nullopt}, 10, 10);
    run.put({"vt", length, std::nullopt}, 6, 10);
  }
  // `copy` at its own lengths, one of them on the axis by chance.
  for (const std::int64_t length : {57, 128, 301}) {
    eval::SampleRecord row = test::made_up_sample("rope", {"copy", length, std::nullopt}, 0, 0.0);
    row.own_length = true;
    run.sink().put_batch({row});
  }
  const RunSummary summary = run.summary();
  REQUIRE(summary.tasks.size() == 3);
  CHECK(summary.tasks[0].info.name == "copy");
  CHECK(summary.tasks[0].info.own_length);
  CHECK_FALSE(summary.tasks[1].info.own_length);
  const auto& mean = summary.variants[0].mean_curve;
  REQUIRE(mean.size() == 2);
  for (const ScorePoint& point : mean) CHECK_THAT(point.mean.value(), WithinAbs(0.8, 1e-12));
  CHECK(mean[0].length_tokens == 128);
  CHECK(mean[0].n_values == 20);
  CHECK(summary.variants[0].tasks[0].curve.size() == 3);
}

TEST_CASE("run_summary: tasks of fixed sizes alone still have a mean", "[analysis][summary]") {
  OneRun run;
  eval::SampleRecord row = test::made_up_sample("rope", {"copy", 57, std::nullopt}, 0, 1.0);
  row.own_length = true;
  run.sink().put_batch({row});
  CHECK(run.summary().variants[0].mean_curve.size() == 1);
}

}  // namespace fathom::analysis
