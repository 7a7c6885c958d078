#pragma once
// Scatter between training seeds apart from the scatter of samples (tasks specification, section 5.4).

#include <cstdint>
#include <optional>
#include <vector>

#include "harness/core/random.h"
#include "harness/core/stats.h"

namespace fathom::analysis {

/// Below this number of seeds nothing can be said about a scheme: "one training run".
inline constexpr std::size_t kMinSeeds = 3;

struct SeedSpread {
  std::size_t n_seeds = 0;
  std::int64_t n_samples = 0;
  double mean = 0;                    ///< over seeds and samples
  std::optional<double> seed_sd;      ///< between training seeds, the samples' part taken out; from two seeds
  std::optional<double> sampling_sd;  ///< of one seed's mean through its samples; from two samples
  std::optional<Interval> interval;   ///< 95 % of the mean: seeds resampled, then samples; from three seeds
};

/// All seeds answer the same samples, so a score is y_si = mean + seed_s + sample_i + rest_si, and with n samples
///
///   seed_sd^2     = max(0, MS_seed - MS_rest) / n,   MS_seed = n sum_s (y_s. - y..)^2 / (S - 1)
///   sampling_sd^2 = mean over seeds of the samples' variance / n
///
/// (two-way layout without repeats, Scheffe 1959, section 7.4). The interval is a two-level percentile bootstrap whose
/// seed part is widened by sqrt(S / (S - 1)), as few seeds understate their scatter by that factor.
/// \param scores  [n_seeds][n_samples]: a sample's mean over its depths, the same samples in the same order for every
///                seed. \throws InvariantError if seeds have different numbers of samples.
SeedSpread seed_spread(const std::vector<std::vector<double>>& scores, const RngKey& key, int resamples = 2000);

}  // namespace fathom::analysis
