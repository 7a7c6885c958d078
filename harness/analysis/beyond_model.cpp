#include "harness/analysis/beyond_model.h"

#include <algorithm>

#include "harness/core/stats.h"

namespace fathom::analysis {

bool fails_facts_alone(const std::vector<store::ControlRow>& controls, std::int32_t variant, std::int32_t task,
                       double threshold_percent) {
  bool asked = false;
  for (const store::ControlRow& row : controls) {
    const bool facts_alone = row.control == "needle_only" || row.control == "oracle";
    if (row.variant != variant || row.task != task || !facts_alone || row.n_samples == 0) continue;
    const Interval interval = wilson_interval(row.mean * static_cast<double>(row.n_samples), row.n_samples);
    if (100 * interval.high >= threshold_percent) return false;
    asked = true;
  }
  return asked;
}

bool beyond_model(const std::vector<store::ControlRow>& controls, std::int32_t variant, std::int32_t task,
                  const std::vector<ScorePoint>& curve, double threshold_percent) {
  const bool may_pass = std::any_of(curve.begin(), curve.end(), [&](const ScorePoint& point) {
    const std::optional<double> best = point.high ? point.high : point.mean;
    return best && 100 * *best >= threshold_percent;
  });
  return !may_pass && fails_facts_alone(controls, variant, task, threshold_percent);
}

}  // namespace fathom::analysis
