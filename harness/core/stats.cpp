#include "harness/core/stats.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/core/error.h"

namespace fathom {

std::optional<double> mean(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::optional<double> standard_error(const std::vector<double>& values) {
  if (values.size() < 2) return std::nullopt;
  const double centre = *mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - centre) * (value - centre);
  const auto n = static_cast<double>(values.size());
  return std::sqrt(sum / (n - 1) / n);
}

Interval wilson_interval(double successes, std::int64_t n, double z) {
  FATHOM_CHECK(n >= 1 && successes >= 0 && successes <= static_cast<double>(n), "wilson_interval arguments");
  const auto count = static_cast<double>(n);
  const double p = successes / count;
  const double z2 = z * z;
  const double denominator = 1 + z2 / count;
  const double centre = (p + z2 / (2 * count)) / denominator;
  const double half = z * std::sqrt(p * (1 - p) / count + z2 / (4 * count * count)) / denominator;
  return {std::max(0.0, centre - half), std::min(1.0, centre + half)};
}

double quantile(std::vector<double> values, double q) {
  FATHOM_CHECK(!values.empty() && q >= 0 && q <= 1, "quantile arguments");
  std::sort(values.begin(), values.end());
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  const double weight = position - static_cast<double>(below);
  return values[below] * (1 - weight) + values[above] * weight;
}

std::optional<Interval> bootstrap_mean_interval(const std::vector<double>& values, RngStream rng, int resamples,
                                                double level) {
  if (values.empty()) return std::nullopt;
  std::vector<double> means(static_cast<std::size_t>(resamples));
  for (double& result : means) {
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += values[rng.uniform_index(values.size())];
    result = sum / static_cast<double>(values.size());
  }
  const double tail = (1 - level) / 2;
  return Interval{quantile(means, tail), quantile(means, 1 - tail)};
}

}  // namespace fathom
