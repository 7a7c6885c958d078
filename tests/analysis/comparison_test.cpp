#include "harness/analysis/comparison.h"

#include <cmath>
#include <functional>

#include "harness/analysis/comparison_pairs.h"
#include "harness/core/hash.h"
#include "harness/store/result_store.h"
#include "harness/store/retention.h"
#include "tests/support/catch.h"
#include "tests/support/made_up_run.h"
#include "tests/support/temp_folder.h"

namespace fathom::analysis {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinAbs;

/// What a made-up run answers: 1 or 0, nothing = the sample failed.
using Answers = std::function<std::optional<double>(const test::MadeUpCell& cell, std::int64_t index)>;

struct RunShape {
  std::string name;
  std::vector<std::string> tasks = {"niah_single_2", "vt"};
  std::vector<std::int64_t> lengths_tokens = {128, 256, 512};
  std::int64_t n_samples = 40;
  std::function<void(eval::SampleRecord&)> change = {};
  std::function<void(eval::RunRecord&)> change_run = {};
  std::function<void(eval::VariantRecord&)> change_variant = {};
};

void put_run(const std::string& path, const RunShape& shape, const Answers& answers) {
  const auto sink = store::open_store(path);
  eval::RunRecord run = test::made_up_run_record(shape.name);
  if (shape.change_run) shape.change_run(run);
  sink->begin_run(run);
  eval::VariantRecord variant = test::made_up_variant("rope");
  if (shape.change_variant) shape.change_variant(variant);
  sink->put_variant(variant);
  std::vector<eval::SampleRecord> rows;
  for (const std::string& task : shape.tasks) {
    for (const std::int64_t length : shape.lengths_tokens) {
      for (const int depth : {0, 5000, 10000}) {
        if (task == "vt" && depth > 0) continue;
        test::MadeUpCell cell{task, length, depth};
        if (task == "vt") cell.depth_bp.reset();
        for (std::int64_t i = 0; i < shape.n_samples; ++i) {
          const std::optional<double> score = answers(cell, i);
          eval::SampleRecord row = test::made_up_sample(variant.name, cell, i, score);
          if (!score) row.status = eval::SampleStatus::kEngineError;
          if (shape.change) shape.change(row);
          rows.push_back(std::move(row));
        }
      }
    }
  }
  sink->put_batch(rows);
  sink->end_run();
}

std::optional<double> all_right(const test::MadeUpCell&, std::int64_t) {
  return 1.0;
}

/// The made-up baseline: everything right up to 256 tokens, nothing at 512.
std::optional<double> right_to_256(const test::MadeUpCell& cell, std::int64_t) {
  return cell.length_tokens <= 256 ? 1.0 : 0.0;
}

class TwoRuns {
 public:
  TwoRuns(RunShape baseline, const Answers& before, RunShape candidate, const Answers& now) {
    baseline.name = "before";
    candidate.name = "now";
    put_run(path(), baseline, before);
    put_run(path(), candidate, now);
  }
  TwoRuns(const Answers& before, const Answers& now) : TwoRuns({}, before, {}, now) {}

  Comparison compare(const GateSettings& settings = {}, const std::vector<std::string>& scorers = {}) const {
    const auto reader = store::open_reader(path());
    return compare_runs({*reader, *reader, "before", "now", path(), path(), settings, scorers});
  }

 private:
  std::string path() const { return folder_.file("results.db"); }
  test::TempFolder folder_;
};

const GateUnit* find_unit(const Comparison& comparison, UnitKind kind, const std::string& task, std::int64_t length) {
  for (const GateUnit& unit : comparison.units) {
    if (unit.kind == kind && unit.task == task && unit.length_tokens == length) return &unit;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("compare: equal runs pass, every sample shared", "[analysis][compare]") {
  const Comparison comparison = TwoRuns(right_to_256, right_to_256).compare();
  CHECK(comparison.exit_code() == ExitCode::kOk);
  CHECK(comparison.incomplete.empty());
  CHECK(comparison.differences.empty());
  CHECK(comparison.worst_cells.empty());
  // Two tasks at three lengths, their means, and the effective context by both rules.
  CHECK(comparison.units.size() == 6 + 3 + 2);
  REQUIRE(comparison.shared.size() == 6);
  CHECK(comparison.shared[0].n_shared == 120);
  for (const GateUnit& unit : comparison.units) CHECK(unit.p_adjusted == 1);
}

TEST_CASE("compare: a drop of one task at one length is a regression with examples", "[analysis][compare]") {
  const Comparison comparison =
      TwoRuns(right_to_256, [](const test::MadeUpCell& cell, std::int64_t index) -> std::optional<double> {
        if (cell.task == "niah_single_2" && cell.length_tokens == 256 && index < 30) return 0.0;
        return right_to_256(cell, index);
      }).compare();
  CHECK(comparison.exit_code() == ExitCode::kRegression);
  const GateUnit* task = find_unit(comparison, UnitKind::kTaskLength, "niah_single_2", 256);
  REQUIRE(task != nullptr);
  CHECK(task->verdict == Verdict::kRegression);
  CHECK_THAT(task->scores.difference, WithinAbs(-0.75, 1e-12));
  // Thirty samples fell and none rose: 2 / 2^30, times at most eleven tests.
  CHECK_THAT(task->p, WithinAbs(std::ldexp(2.0, -30), 1e-15));
  CHECK_THAT(task->p_adjusted, WithinAbs(11 * std::ldexp(2.0, -30), 1e-15));
  const GateUnit* mean = find_unit(comparison, UnitKind::kMeanLength, "", 256);
  REQUIRE(mean != nullptr);
  CHECK_THAT(mean->scores.difference, WithinAbs(-0.375, 1e-12));
  CHECK(find_unit(comparison, UnitKind::kTaskLength, "vt", 256)->verdict == Verdict::kSame);
  const GateUnit* effective = find_unit(comparison, UnitKind::kEffectiveAbsolute, "", 0);
  REQUIRE(effective != nullptr);
  CHECK(effective->effective.steps == -1);
  CHECK(effective->verdict == Verdict::kRegression);
  REQUIRE(comparison.worst_cells.size() == 3);
  const CellChange& worst = comparison.worst_cells.front();
  CHECK(worst.n_samples == 40);
  CHECK_THAT(worst.p, WithinAbs(std::ldexp(2.0, -30), 1e-15));
  REQUIRE(worst.examples.size() == 3);
  CHECK(worst.examples[1].index == 1);
  CHECK(worst.examples[1].expected == "1007919");
  CHECK_THAT(worst.examples[1].candidate_reply, ContainsSubstring("4711"));
  CHECK_THAT(worst.examples[1].baseline_reply, ContainsSubstring("1007919"));
  CHECK_THAT(worst.examples[1].prompt_tail, ContainsSubstring("quay-1"));
}

TEST_CASE("compare: both thresholds must be passed", "[analysis][compare]") {
  const TwoRuns runs(all_right, [](const test::MadeUpCell& cell, std::int64_t index) -> std::optional<double> {
    return cell.length_tokens == 256 && index < 20 ? 0.0 : 1.0;
  });
  CHECK(runs.compare().exit_code() == ExitCode::kRegression);
  GateSettings tolerant;
  tolerant.tolerance_points = 50;  // a drop of exactly the tolerance is not larger
  tolerant.absolute_threshold = 10;
  tolerant.base_lengths = {"256"};
  const Comparison large = runs.compare(tolerant);
  CHECK(large.exit_code() == ExitCode::kOk);
  CHECK(find_unit(large, UnitKind::kTaskLength, "vt", 256)->verdict == Verdict::kWarning);
  GateSettings strict;
  strict.alpha = 1e-13;  // forty samples of the mean fell together: 2 / 2^40, times eight
  const Comparison insignificant = runs.compare(strict);
  CHECK(insignificant.exit_code() == ExitCode::kOk);
  CHECK(find_unit(insignificant, UnitKind::kTaskLength, "vt", 256)->verdict == Verdict::kWarning);
}

TEST_CASE("compare: an effective context that is not tested stays in the family with p 1", "[analysis][compare]") {
  const TwoRuns runs(all_right, [](const test::MadeUpCell& cell, std::int64_t index) -> std::optional<double> {
    return cell.length_tokens == 256 && index < 20 ? 0.0 : 1.0;
  });
  GateSettings settings;
  const Comparison tested = runs.compare(settings);
  settings.effective_resamples = 0;
  const Comparison untested = runs.compare(settings);
  REQUIRE(untested.units.size() == tested.units.size());
  for (std::size_t i = 0; i < tested.units.size(); ++i) {
    const GateUnit& unit = untested.units[i];
    CHECK(unit.p_adjusted >= tested.units[i].p_adjusted);
    if (unit.is_effective()) {
      CHECK(unit.p == 1);
      CHECK(unit.effective.steps == tested.units[i].effective.steps);
    } else {
      CHECK(unit.p == tested.units[i].p);
    }
  }
}

TEST_CASE("compare: a rise is no regression", "[analysis][compare]") {
  const Comparison comparison = TwoRuns(right_to_256, all_right).compare();
  CHECK(comparison.exit_code() == ExitCode::kOk);
  CHECK(find_unit(comparison, UnitKind::kTaskLength, "vt", 512)->verdict == Verdict::kBetter);
  CHECK(find_unit(comparison, UnitKind::kEffectiveAbsolute, "", 0)->verdict == Verdict::kBetter);
}

TEST_CASE("compare: missing cells, failures and few samples are incomplete, even with a regression",
          "[analysis][compare]") {
  RunShape short_run;
  short_run.lengths_tokens = {128, 256};
  const Comparison missing = TwoRuns({}, all_right, short_run, right_to_256).compare();
  CHECK(missing.exit_code() == ExitCode::kIncomplete);
  REQUIRE_FALSE(missing.incomplete.empty());
  CHECK_THAT(missing.incomplete.front(), ContainsSubstring("rope: 4 cells of the baseline have no sample in common"));

  const Comparison failed =
      TwoRuns(all_right, [](const test::MadeUpCell& cell, std::int64_t index) -> std::optional<double> {
        if (cell.length_tokens == 512) return 0.0;
        if (cell.length_tokens == 128 && index == 7) return std::nullopt;
        return 1.0;
      }).compare();
  CHECK(failed.count(Verdict::kRegression) > 0);
  CHECK(failed.exit_code() == ExitCode::kIncomplete);
  CHECK_THAT(failed.incomplete.front(),
             ContainsSubstring("niah_single_2 at 128: 3 of 120 samples asked in both runs failed"));

  RunShape few;
  few.n_samples = 10;
  const TwoRuns small(few, all_right, few, all_right);
  CHECK(small.compare().exit_code() == ExitCode::kIncomplete);
  CHECK_THAT(small.compare().incomplete.front(), ContainsSubstring("fewer than 20 samples in common"));
  GateSettings lower;
  lower.min_samples = 10;
  CHECK(small.compare(lower).exit_code() == ExitCode::kOk);
}

TEST_CASE("compare: only shared samples count", "[analysis][compare]") {
  RunShape more;
  more.n_samples = 60;
  // The samples that only the candidate has are all wrong.
  const Comparison comparison =
      TwoRuns({}, all_right, more, [](const test::MadeUpCell&, std::int64_t index) -> std::optional<double> {
        return index < 40 ? 1.0 : 0.0;
      }).compare();
  CHECK(comparison.exit_code() == ExitCode::kOk);
  CHECK(comparison.shared[0].n_only_candidate == 60);
  CHECK(comparison.shared[0].n_shared == 120);
}

TEST_CASE("compare: another seed, task version or scorer version is refused", "[analysis][compare]") {
  RunShape seeded;
  seeded.change_run = [](eval::RunRecord& run) { run.seed = 2; };
  CHECK_THROWS_AS(TwoRuns({}, all_right, seeded, all_right).compare(), ConfigError);
  CHECK_THROWS_WITH(TwoRuns({}, all_right, seeded, all_right).compare(), ContainsSubstring("seed 1 and seed 2"));
  RunShape version;
  version.change = [](eval::SampleRecord& row) {
    row.sample.task_version = 2;
    row.sample.address = hash_hex(row.sample.key + "|v2");
  };
  CHECK_THROWS_WITH(TwoRuns({}, all_right, version, all_right).compare(),
                    ContainsSubstring("task niah_single_2 has version 1 and version 2"));
  RunShape scorer;
  scorer.change = [](eval::SampleRecord& row) { row.scores[0].scorer_version = 2; };
  CHECK_THROWS_WITH(TwoRuns({}, all_right, scorer, all_right).compare(),
                    ContainsSubstring("scorer all has version 1 and version 2"));
}

TEST_CASE("compare: another tokenizer or prompt is refused with the reason", "[analysis][compare]") {
  RunShape tokenizer;
  tokenizer.change = [](eval::SampleRecord& row) {
    row.sample.address = hash_hex(row.sample.key + "|tokenizer");
    for (TokenId& id : row.sample.prompt_ids) id = 8;
  };
  CHECK_THROWS_AS(TwoRuns({}, all_right, tokenizer, all_right).compare(), ConfigError);
  CHECK_THROWS_WITH(TwoRuns({}, all_right, tokenizer, all_right).compare(),
                    ContainsSubstring("another tokenizer: the same prompt text has other token ids"));
  RunShape pack;
  pack.change = [](eval::SampleRecord& row) {
    row.sample.address = hash_hex(row.sample.key + "|pack");
    row.sample.prompt_text = "Another introduction. " + row.sample.prompt_text;
  };
  CHECK_THROWS_WITH(TwoRuns({}, all_right, pack, all_right).compare(),
                    ContainsSubstring("prompts part at 'The keeper") && ContainsSubstring("'Another introduction."));
  RunShape dropped = pack;
  dropped.change = [](eval::SampleRecord& row) {
    row.sample.address = hash_hex(row.sample.key + "|pack");
    row.sample.prompt_text = store::kDroppedText;
    row.sample.prompt_ids.clear();
  };
  CHECK_THROWS_WITH(TwoRuns({}, all_right, dropped, all_right).compare(),
                    ContainsSubstring("the texts of a prompt have been dropped"));
}

TEST_CASE("compare: config, versions, hardware and variants are set side by side", "[analysis][compare]") {
  RunShape changed;
  changed.change_run = [](eval::RunRecord& run) {
    run.hardware = "another processor";
    run.tool_version = "0.2.0";
    run.canonical_config += "[engine]\nthreads = 4\n";
  };
  changed.change_variant = [](eval::VariantRecord& variant) {
    variant.dtype = "bf16";
    variant.scaling = "yarn";
  };
  const Comparison comparison = TwoRuns({}, all_right, changed, all_right).compare();
  CHECK(comparison.differences ==
        std::vector<std::string>{"config engine.threads: absent before, 4 now", "fathom: 0.1.0 before, 0.2.0 now",
                                 "hardware: made-up processor, 2 cores, 24 GiB before, another processor now",
                                 "rope: scaling: none before, yarn now", "rope: dtype: float32 before, bf16 now"});
}

TEST_CASE("compare: the only variants without a namesake belong together", "[analysis][compare]") {
  RunShape renamed;
  renamed.change_variant = [](eval::VariantRecord& variant) { variant.name = "rope yarn"; };
  const Comparison comparison = TwoRuns({}, all_right, renamed, all_right).compare();
  REQUIRE(comparison.pairs.size() == 1);
  CHECK(comparison.pairs[0].name == "rope -> rope yarn");
  CHECK(comparison.exit_code() == ExitCode::kOk);
}

TEST_CASE("compare: variants that differ in a setting of the whole run belong together", "[analysis][compare]") {
  const auto pairs_of = [](const std::vector<std::string>& before, const std::vector<std::string>& now) {
    ComparisonSide baseline, candidate;
    for (const std::string& name : before) baseline.info.variants.push_back(test::made_up_variant(name));
    for (const std::string& name : now) candidate.info.variants.push_back(test::made_up_variant(name));
    std::vector<std::string> names;
    for (const VariantPairing& variant : pair_runs(baseline, candidate).variants) names.push_back(variant.pair.name);
    return names;
  };
  using Names = std::vector<std::string>;
  CHECK(pairs_of({"alibi", "rope", "rope yarn"}, {"alibi bf16", "rope bf16", "rope yarn bf16"}) ==
        Names{"alibi -> alibi bf16", "rope -> rope bf16", "rope yarn -> rope yarn bf16"});
  CHECK(pairs_of({"rope float32", "rope yarn float32"}, {"rope bf16", "rope yarn bf16"}) ==
        Names{"rope float32 -> rope bf16", "rope yarn float32 -> rope yarn bf16"});
  CHECK(pairs_of({"rope", "rope yarn"}, {"rope", "rope linear", "rope ntk"}) == Names{"rope"});
  // Scaling names differ from variant to variant: no pair is certain.
  CHECK(pairs_of({"rope yarn", "rope ntk"}, {"rope linear", "rope dynamic"}).empty());
}

TEST_CASE("compare: graded scores are compared in their own unit", "[analysis][compare]") {
  const Comparison comparison =
      TwoRuns(all_right, [](const test::MadeUpCell& cell, std::int64_t) -> std::optional<double> {
        return cell.length_tokens == 512 ? 0.0 : 1.0;
      }).compare({}, {"lp"});
  REQUIRE(comparison.other_scores.size() == 6);
  const ScoreChange& change = comparison.other_scores[2];
  CHECK(change.scorer == "lp");
  CHECK(change.length_tokens == 512);
  // Made-up scores: -0.5 bits for a right answer, -8.5 for a wrong one.
  CHECK_THAT(change.scores.difference, WithinAbs(-8, 1e-9));
  CHECK(change.scores.p < 1e-9);
}

}  // namespace fathom::analysis
