#include "harness/analysis/score_point.h"

#include <algorithm>

#include "harness/core/error.h"
#include "harness/core/stats.h"

namespace fathom::analysis {
namespace {

/// How much less the values of one length say than as many independent ones (Kish 1965, section 5.4): variance of the
/// mean with samples as clusters over the binomial one. At least 1; 1 where all values are equal.
double design_effect(const std::vector<std::vector<double>>& by_sample) {
  double total = 0;
  double n_values = 0;
  double n_samples = 0;
  for (const auto& values : by_sample) {
    for (const double value : values) total += value;
    n_values += static_cast<double>(values.size());
    n_samples += values.empty() ? 0 : 1;
  }
  const double centre = n_values > 0 ? total / n_values : 0;
  if (n_samples < 2 || centre <= 0 || centre >= 1) return 1;
  double squares = 0;
  for (const auto& values : by_sample) {
    double residual = 0;
    for (const double value : values) residual += value - centre;
    squares += residual * residual;
  }
  const double clustered = squares / (n_values * n_values) * n_samples / (n_samples - 1);
  return std::max(1.0, clustered / (centre * (1 - centre) / n_values));
}

/// Wilson with a number of values that need not be whole, rounded down to stay on the safe side. Of equal fractional
/// values the mean counts as that share of successes, which only widens the interval.
Interval certain_interval(double mean, double n_independent) {
  const auto n = std::max<std::int64_t>(1, static_cast<std::int64_t>(n_independent));
  return wilson_interval(std::clamp(mean, 0.0, 1.0) * static_cast<double>(n), n);
}

}  // namespace

std::string_view to_string(Estimator estimator) {
  switch (estimator) {
    case Estimator::kNone:
      return "none";
    case Estimator::kWilson:
      return "wilson";
    case Estimator::kWilsonClustered:
      return "wilson_clustered";
    case Estimator::kBootstrap:
      return "bootstrap";
  }
  throw InvariantError("unknown Estimator");
}

double design_effect_of_curve(const std::vector<LengthScores>& lengths) {
  double largest = 1;
  for (const LengthScores& scores : lengths) largest = std::max(largest, design_effect(scores.by_sample));
  return largest;
}

ScorePoint score_point(const std::vector<std::vector<double>>& by_sample, const LengthScore* bootstrap,
                       const CurveFacts& facts) {
  ScorePoint point;
  double sum = 0;
  bool one_each = true;
  std::optional<double> any_value;
  bool all_equal = true;
  for (const auto& values : by_sample) {
    if (values.empty()) continue;
    ++point.n_samples;
    one_each = one_each && values.size() == 1;
    for (const double value : values) {
      ++point.n_values;
      sum += value;
      all_equal = all_equal && value == any_value.value_or(value);
      any_value = value;
    }
  }
  if (point.n_values == 0) return point;
  point.mean = sum / static_cast<double>(point.n_values);
  point.n_independent = static_cast<double>(point.n_values) / facts.design_effect;
  const bool enough = !facts.fractional || point.n_values >= kMinBootstrapValues;
  std::optional<Interval> interval;
  if (!facts.fractional && one_each) {
    interval = wilson_interval(sum, point.n_samples);
    point.estimator = Estimator::kWilson;
  } else if (all_equal && enough) {
    interval = certain_interval(*point.mean, point.n_independent);
    point.estimator = Estimator::kWilsonClustered;
  } else if (point.n_values >= kMinBootstrapValues && bootstrap != nullptr && bootstrap->low) {
    interval = Interval{*bootstrap->low / 100, *bootstrap->high / 100};
    point.estimator = Estimator::kBootstrap;
  }
  if (interval) {
    point.low = interval->low;
    point.high = interval->high;
  }
  return point;
}

ScorePoint mean_score_point(const LengthScore& score, const std::vector<ScorePoint>& parts) {
  ScorePoint point;
  point.length_tokens = score.length_tokens;
  for (const ScorePoint& part : parts) {
    point.n_samples += part.n_samples;
    point.n_values += part.n_values;
    point.n_independent += part.n_independent;
    point.n_failed += part.n_failed;
  }
  point.mean = score.score / 100;
  const bool certain = *point.mean <= 0 || *point.mean >= 1;
  if (certain) {
    const Interval interval = certain_interval(*point.mean, point.n_independent);
    point.low = interval.low;
    point.high = interval.high;
    point.estimator = Estimator::kWilsonClustered;
  } else if (point.n_values >= kMinBootstrapValues && score.low) {
    point.low = *score.low / 100;
    point.high = *score.high / 100;
    point.estimator = Estimator::kBootstrap;
  }
  return point;
}

const LengthScore* find_length(const EffectiveContext& effective, std::int64_t length_tokens) {
  for (const LengthScore& point : effective.curve) {
    if (point.length_tokens == length_tokens) return &point;
  }
  return nullptr;
}

}  // namespace fathom::analysis
