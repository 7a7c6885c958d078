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

double expanded_tail(std::int64_t n_samples) {
  FATHOM_CHECK(n_samples >= 2, "expanded_tail needs two samples");
  const auto n = static_cast<double>(n_samples);
  const double nu = n - 1;
  const double z = kZ95;
  const double z3 = z * z * z;
  const double z5 = z3 * z * z;
  const double z7 = z5 * z * z;
  // Abramowitz & Stegun 26.7.5.
  const double t = z + (z3 + z) / (4 * nu) + (5 * z5 + 16 * z3 + 3 * z) / (96 * nu * nu) +
                   (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * nu * nu * nu);
  return std::erfc(std::sqrt(n / nu) * t / std::sqrt(2.0)) / 2;
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
