#pragma once
// Everything that reports show of one run, computed once from its raw rows.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/analysis/effective_context.h"
#include "harness/analysis/score_point.h"
#include "harness/analysis/seed_groups.h"
#include "harness/config/run_config.h"
#include "harness/scoring/position_bins.h"
#include "harness/store/result_reader.h"

namespace fathom::analysis {

/// The [report] section as the analysis needs it.
struct SummarySettings {
  double absolute_threshold = 85.6;                       ///< percent
  std::vector<std::string> effective = {"each", "mean"};  ///< "each", "mean", task names
  std::vector<std::string> base_lengths = {
      "auto"};  ///< as in the config: "auto", or lengths such as "256", "4K", "0.5x"
  int resamples = 2000;
  int max_misses_per_cell = 5;
};

SummarySettings summary_settings(const config::ReportSection& section);

/// The lengths whose highest score is the base of the relative rule. \param asked  as in SummarySettings. "auto": the
/// two shortest tested, of a trained model among those it was trained on.
std::vector<std::int64_t> base_lengths_of(const std::vector<std::int64_t>& tested, const eval::VariantRecord& record,
                                          const std::vector<std::string>& asked);

/// One variant on one task.
struct TaskResult {
  std::vector<ScorePoint> curve;  ///< by length, depths pooled
  std::vector<ScorePoint> cells;  ///< by length, then depth
  bool sweeps_depth = false;
  bool beyond_model = false;           ///< fails even with the facts alone, where a control asked that
  bool fails_without_control = false;  ///< passes at no length, and has no control that could say why
  EffectiveContext effective;
};

struct VariantSummary {
  eval::VariantRecord record;
  std::vector<TaskResult> tasks;       ///< parallel to RunSummary::tasks; an empty curve: no results
  std::vector<ScorePoint> mean_curve;  ///< mean over tasks, where every task has results; tasks of fixed sizes left out
  EffectiveContext mean;
  std::vector<eval::CellRecord> unbuilt;  ///< cells without results, with the reason
};

struct TaskLabel {
  store::TaskInfo info;
  std::string label;  ///< "vt", "niah_single_2@ruler"; with " v2" where a run holds several versions
};

/// What a token of running text costs by the number of tokens in front of it, over all samples of one length.
struct PositionCurve {
  std::int32_t variant = 0;
  std::int32_t task = 0;
  std::int64_t length_tokens = 0;
  scoring::PositionBits bits;
};

struct RunSummary {
  store::RunInfo info;
  SummarySettings settings;
  std::vector<TaskLabel> tasks;
  /// What the variants' means are taken over where `report.effective` names tasks instead of the mean; else empty.
  std::vector<std::string> headline_tasks;
  std::vector<std::int64_t> lengths;  ///< all that were tested or asked for, shortest first
  std::vector<VariantSummary> variants;
  std::vector<store::MissRow> misses;
  bool misses_thinned = false;  ///< fewer a cell than asked, to keep the report readable
  int misses_per_cell = 0;      ///< what was shown at most
  std::vector<store::CostRow> costs;
  std::vector<store::GuessRow> guesses;
  std::vector<store::ControlRow> controls;
  std::vector<store::ReplyRow> replies;
  std::vector<SeedGroupRow> seeds;                ///< settings trained with several seeds
  std::vector<store::ScoreMeanRow> other_scores;  ///< of scorers that are not the task's main metric
  std::vector<PositionCurve> position_bits;       ///< of tasks that score running text
  std::int64_t n_values = 0;
  std::int64_t n_failed = 0;

  bool shows_mean() const;
  /// Whether report.effective names this task.
  bool names_task(std::size_t task) const;
  /// Whether the effective context of this task is asked for.
  bool shows_task(std::size_t task) const;
};

/// Deterministic: the same rows and settings give the same numbers. \throws StoreError for an unknown run, ConfigError
/// for base lengths that do not read.
RunSummary summarise_run(const store::ResultReader& results, const std::string& run, const SummarySettings& settings);

}  // namespace fathom::analysis
