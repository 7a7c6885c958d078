#include "harness/analysis/beyond_model.h"

#include <algorithm>

#include "harness/core/stats.h"

namespace fathom::analysis {
namespace {

bool leaves_facts_alone(const store::ControlRow& row) {
  return (row.control == "needle_only" || row.control == "oracle") && row.n_samples > 0;
}

bool may_pass(const std::vector<ScorePoint>& curve, double threshold_percent) {
  return std::any_of(curve.begin(), curve.end(), [&](const ScorePoint& point) {
    const std::optional<double> best = point.high ? point.high : point.mean;
    return best && 100 * *best >= threshold_percent;
  });
}

}  // namespace

bool asked_facts_alone(const std::vector<store::ControlRow>& controls, std::int32_t variant,
                       std::optional<std::int32_t> task) {
  return std::any_of(controls.begin(), controls.end(), [&](const store::ControlRow& row) {
    return row.variant == variant && (!task || row.task == *task) && leaves_facts_alone(row);
  });
}

std::optional<double> facts_alone_score(const std::vector<store::ControlRow>& controls, std::int32_t variant,
                                        std::int32_t task, std::int64_t length_tokens) {
  for (const store::ControlRow& row : controls) {
    if (row.variant == variant && row.task == task && row.length_tokens == length_tokens && leaves_facts_alone(row))
      return row.mean;
  }
  return std::nullopt;
}

bool fails_facts_alone(const std::vector<store::ControlRow>& controls, std::int32_t variant, std::int32_t task,
                       double threshold_percent) {
  const bool passes = std::any_of(controls.begin(), controls.end(), [&](const store::ControlRow& row) {
    if (row.variant != variant || row.task != task || !leaves_facts_alone(row)) return false;
    const Interval interval = wilson_interval(row.mean * static_cast<double>(row.n_samples), row.n_samples);
    return 100 * interval.high >= threshold_percent;
  });
  return asked_facts_alone(controls, variant, task) && !passes;
}

bool beyond_model(const std::vector<store::ControlRow>& controls, std::int32_t variant, std::int32_t task,
                  const std::vector<ScorePoint>& curve, double threshold_percent) {
  return !may_pass(curve, threshold_percent) && fails_facts_alone(controls, variant, task, threshold_percent);
}

bool fails_without_control(const std::vector<store::ControlRow>& controls, std::int32_t variant, std::int32_t task,
                           const std::vector<ScorePoint>& curve, double threshold_percent) {
  return !curve.empty() && !may_pass(curve, threshold_percent) && asked_facts_alone(controls, variant, std::nullopt) &&
         !asked_facts_alone(controls, variant, task);
}

}  // namespace fathom::analysis
