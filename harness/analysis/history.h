#pragma once
// The effective context of each variant over the runs of a database.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/analysis/run_summary.h"

namespace fathom::analysis {

struct HistoryPoint {
  std::string run;
  std::string started_at;
  std::string source_revision;
  EffectiveValue absolute, relative;
  std::optional<EffectiveValue> absolute_low, absolute_high, relative_low, relative_high;
  std::optional<double> average;   ///< percent: mean over lengths of the mean over tasks
  bool effective_changed = false;  ///< first run after a change of the effective context
  bool average_changed = false;    ///< first run after a change of the average
};

/// One variant, oldest run first.
struct HistorySeries {
  std::string variant;
  std::vector<HistoryPoint> points;
};

/// Runs are ordered by their start; variants are those of equal name, in the order they first appear. Change points are
/// sought in log2 of the absolute effective context (of the relative one where no run passes the absolute threshold)
/// and in the average. \param runs         empty = all. \param settings_of  the [report] section of a stored run.
std::vector<HistorySeries> run_history(const store::ResultReader& results, const std::vector<std::string>& runs,
                                       const std::function<SummarySettings(const eval::RunRecord&)>& settings_of);

/// Marks the changes of one series.
void mark_changes(HistorySeries& series);

}  // namespace fathom::analysis
