#pragma once
// The regression gate: a candidate run against a baseline run on the samples that both answered (tasks specification,
// section 5).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/analysis/paired_bootstrap.h"
#include "harness/core/error.h"
#include "harness/store/result_reader.h"

namespace fathom::analysis {

struct GateSettings {
  double tolerance_points = 2;       ///< a drop of a mean must be larger than this
  double alpha = 0.05;               ///< and its adjusted p smaller than this
  std::int64_t min_samples = 20;     ///< samples in common that every task and length needs
  double max_failed_share = 0.01;    ///< of samples that are not ok
  double absolute_threshold = 85.6;  ///< of the effective context, percent
  std::vector<std::string> base_lengths = {"auto"};
  int resamples = 2000;  ///< of the intervals of differences; 0 = no intervals
  /// At least; more where the family is so large that they would not do. 0 = the effective context is not tested: its p
  /// stays 1, in the same family.
  std::int64_t effective_resamples = 20000;
  std::size_t n_worst_cells = 5;
  std::size_t n_examples = 3;  ///< of each of those cells
};

/// One run as it is read for a comparison.
struct ComparisonSide {
  std::string database;  ///< path, as shown
  store::RunInfo info;
  std::vector<store::TaskInfo> tasks;
  std::vector<store::PairableRow> rows;  ///< of the tasks' main metrics, in the order of the reader
};

/// What became of the samples of one task and length of one pair of variants.
struct SharedCount {
  std::size_t pair = 0;
  std::string task;
  std::int64_t length_tokens = 0;
  std::int64_t n_shared = 0;            ///< scored in both
  std::int64_t n_failed_baseline = 0;   ///< asked in both, not ok in the baseline
  std::int64_t n_failed_candidate = 0;  ///< asked in both, not ok in the candidate alone
  std::int64_t n_unfit = 0;             ///< asked in both, too short or too long in both
  std::int64_t n_other_question = 0;    ///< same place in the sweep, another question
  std::int64_t n_only_baseline = 0, n_only_candidate = 0;
};

enum class UnitKind { kTaskLength, kMeanLength, kEffectiveAbsolute, kEffectiveRelative };
/// "task", "mean", "effective_absolute", "effective_relative".
std::string_view to_string(UnitKind kind);

enum class Verdict { kSame, kBetter, kWarning, kRegression };
/// "same", "better", "warning", "regression". A warning is a drop that is significant or large enough, but not both.
std::string_view to_string(Verdict verdict);

/// One tested hypothesis of the family.
struct GateUnit {
  UnitKind kind = UnitKind::kTaskLength;
  std::size_t pair = 0;
  std::string task;                ///< empty for means and effective lengths
  std::int64_t length_tokens = 0;  ///< 0 for effective lengths
  PairedDifference scores;         ///< of the kinds with a length; means in 0..1
  EffectiveChange effective;       ///< of the other kinds
  double p = 1, p_adjusted = 1;
  Verdict verdict = Verdict::kSame;

  bool is_effective() const { return kind == UnitKind::kEffectiveAbsolute || kind == UnitKind::kEffectiveRelative; }
};

struct MissExample {
  std::int64_t index = 0;
  std::int64_t baseline_result_id = 0, candidate_result_id = 0;
  double baseline_score = 0, candidate_score = 0;
  std::string prompt_tail, expected, baseline_reply, candidate_reply;
};

/// One depth cell, for display: it is no unit of the gate's family but has one of its own.
struct CellChange {
  std::size_t pair = 0;
  std::string task;
  std::int64_t length_tokens = 0;
  std::optional<std::int32_t> depth_bp;
  std::int64_t n_samples = 0;
  double baseline = 0, candidate = 0;  ///< means, 0..1
  double p = 1, p_adjusted = 1;        ///< exact McNemar on 0/1 scores, else sign-flip
  std::vector<MissExample> examples;   ///< samples on which the candidate scored lower

  double difference() const { return candidate - baseline; }
};

/// Another scorer's paired difference, in the scorer's own unit; no part of the gate.
struct ScoreChange {
  std::size_t pair = 0;
  std::string scorer, task;
  std::int64_t length_tokens = 0;
  PairedDifference scores;
};

/// Variants that are compared with each other: of equal name, or the only one of each run without a namesake.
struct VariantPair {
  std::size_t baseline = 0, candidate = 0;  ///< indices into RunInfo::variants
  std::string name;                         ///< "rope yarn", or "A -> B" where names differ
};

struct Comparison {
  GateSettings settings;
  std::string baseline_database, candidate_database;
  store::RunInfo baseline, candidate;
  std::vector<VariantPair> pairs;
  std::vector<std::string> only_baseline_variants, only_candidate_variants;
  std::vector<SharedCount> shared;      ///< by pair, task, length
  std::vector<GateUnit> units;          ///< the family, by pair, kind, task, length
  std::vector<CellChange> worst_cells;  ///< largest drop first
  std::size_t n_cells = 0;
  std::vector<ScoreChange> other_scores;
  std::vector<std::string> differences;  ///< of config, versions, hardware and variants, one line each
  std::vector<std::string> incomplete;   ///< reasons for exit code 5

  std::size_t count(Verdict verdict) const;
  /// 5 before 4 before 0: an incomplete comparison is no pass.
  ExitCode exit_code() const;
};

/// Compares what is given; nothing is read. Texts of examples stay empty.
/// \throws ConfigError if the runs are not comparable: seed or task version differs.
Comparison compare_sides(const ComparisonSide& baseline, const ComparisonSide& candidate, const GateSettings& settings);

struct CompareRequest {
  const store::ResultReader& baseline_results;
  const store::ResultReader& candidate_results;
  std::string baseline_run, candidate_run;
  std::string baseline_database, candidate_database;
  GateSettings settings;
  std::vector<std::string> scorers;  ///< whose differences are shown too
};

/// Reads both runs, compares them and adds the texts of the examples.
/// \throws ConfigError if the runs are not comparable: seed, task or scorer version, tokenizer or prompts differ;
/// StoreError for an unknown run.
Comparison compare_runs(const CompareRequest& request);

}  // namespace fathom::analysis
