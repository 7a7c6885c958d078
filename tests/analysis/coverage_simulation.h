#pragma once
// How often intervals hold the truth: simulated scores of known accuracy, the product's own intervals.

#include <cstdint>
#include <string>
#include <vector>

namespace fathom::test {

struct Coverage {
  std::string name;
  std::int64_t n_held = 0;
  std::int64_t n_tries = 0;
  double share() const { return static_cast<double>(n_held) / static_cast<double>(n_tries); }
  /// Standard error of the share.
  double error() const;
};

/// Each averages over accuracies .05, .10, …, .95. Everything is a pure function of the arguments.

/// Wilson's interval of 0/1 scores, by summing the binomial distribution: nothing is drawn.
double exact_wilson_coverage(std::int64_t n_samples);
/// A length of 11 depths: outcomes of a sample's depths are alike (correlation 0.25), samples resampled as clusters.
Coverage clustered_mean_coverage(std::int64_t n_samples, std::int64_t n_tries);
/// Difference of two settings whose outcomes on a sample are alike, 11 depths, true difference 0 to 10 points.
Coverage paired_difference_coverage(std::int64_t n_samples, std::int64_t n_tries);
/// Interval of the effective context of curves that fall through the threshold at random places.
struct EffectiveCoverage {
  Coverage absolute, relative;
};
EffectiveCoverage effective_context_coverage(std::int64_t n_samples, std::int64_t n_tries);
/// Two-level interval over training seeds: accuracy of a seed scatters by 5 points.
Coverage seed_mean_coverage(std::int64_t n_seeds, std::int64_t n_samples, std::int64_t n_tries);

}  // namespace fathom::test
