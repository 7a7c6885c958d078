#pragma once
// Plain statistics on vectors of scores. Randomness comes in as an explicit stream.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "harness/core/random.h"

namespace fathom {

struct Interval {
  double low;
  double high;
};

/// 0.975 quantile of the standard normal.
inline constexpr double kZ95 = 1.959963984540054;

std::optional<double> mean(const std::vector<double>& values);
/// Sample standard deviation over sqrt(n); nothing for fewer than two values.
std::optional<double> standard_error(const std::vector<double>& values);

/// Wilson score interval of a proportion (Wilson 1927): centre (p + z^2/2n)/(1 + z^2/n),
/// half-width z sqrt(p(1-p)/n + z^2/4n^2)/(1 + z^2/n). n >= 1, 0 <= successes <= n.
Interval wilson_interval(double successes, std::int64_t n, double z = kZ95);

/// The q-quantile (0..1) of values by linear interpolation between order statistics (Hyndman & Fan type 7).
double quantile(std::vector<double> values, double q);

/// Share of resamples to leave out at each end for a 95 % interval of a statistic of n samples: the expanded percentile
/// interval (Hesterberg 2015, "What teachers should know about the bootstrap", section 4.4), Phi(-sqrt(n / (n - 1))
/// t_{0.975, n - 1}). Resamples of n samples scatter too little, by sqrt((n - 1) / n) and as if the spread were known;
/// 0.025 for very large n. t by its series in 1 / (n - 1), good to 1 % from n = 4. n >= 2.
double expanded_tail(std::int64_t n_samples);

/// Percentile bootstrap of the mean over samples. Nothing for no values.
std::optional<Interval> bootstrap_mean_interval(const std::vector<double>& values, RngStream rng, int resamples = 2000,
                                                double level = 0.95);

}  // namespace fathom
