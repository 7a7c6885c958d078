#include "harness/analysis/seed_spread.h"

#include <algorithm>
#include <cmath>

#include "harness/core/error.h"

namespace fathom::analysis {
namespace {

struct TwoWayMeans {
  double all = 0;
  std::vector<double> by_seed;    // [n_seeds]
  std::vector<double> by_sample;  // [n_samples]
};

TwoWayMeans two_way_means(const std::vector<std::vector<double>>& scores) {
  const auto n_seeds = static_cast<double>(scores.size());
  const auto n_samples = static_cast<double>(scores.front().size());
  TwoWayMeans means;
  means.by_sample.assign(scores.front().size(), 0.0);
  for (const std::vector<double>& seed : scores) {
    double sum = 0;
    for (std::size_t i = 0; i < seed.size(); ++i) {
      sum += seed[i];
      means.by_sample[i] += seed[i] / n_seeds;
    }
    means.by_seed.push_back(sum / n_samples);
    means.all += sum / n_samples / n_seeds;
  }
  return means;
}

double seed_variance(const std::vector<std::vector<double>>& scores, const TwoWayMeans& means) {
  const auto n_seeds = static_cast<double>(scores.size());
  const auto n_samples = static_cast<double>(means.by_sample.size());
  double between = 0;
  double rest = 0;
  for (std::size_t s = 0; s < scores.size(); ++s) {
    between += n_samples * (means.by_seed[s] - means.all) * (means.by_seed[s] - means.all);
    for (std::size_t i = 0; i < scores[s].size(); ++i) {
      const double residual = scores[s][i] - means.by_seed[s] - means.by_sample[i] + means.all;
      rest += residual * residual;
    }
  }
  between /= n_seeds - 1;
  rest /= (n_seeds - 1) * (n_samples - 1);
  return std::max(0.0, between - rest) / n_samples;
}

double sampling_variance(const std::vector<std::vector<double>>& scores, const TwoWayMeans& means) {
  const auto n_samples = static_cast<double>(means.by_sample.size());
  double sum = 0;
  for (std::size_t s = 0; s < scores.size(); ++s) {
    for (const double score : scores[s]) sum += (score - means.by_seed[s]) * (score - means.by_seed[s]);
  }
  return sum / (n_samples - 1) / n_samples / static_cast<double>(scores.size());
}

Interval two_level_interval(const std::vector<std::vector<double>>& scores, const TwoWayMeans& means, const RngKey& key,
                            int resamples) {
  RngStream rng(key);
  const std::size_t n_seeds = scores.size();
  const std::size_t n_samples = means.by_sample.size();
  const double widen = std::sqrt(static_cast<double>(n_seeds) / static_cast<double>(n_seeds - 1));
  std::vector<double> drawn(static_cast<std::size_t>(resamples));
  std::vector<std::size_t> picked(n_samples);
  for (double& value : drawn) {
    for (std::size_t& sample : picked) sample = rng.uniform_index(n_samples);
    double seeds_mean = 0;
    double samples_part = 0;
    for (std::size_t k = 0; k < n_seeds; ++k) {
      const std::size_t seed = rng.uniform_index(n_seeds);
      double sum = 0;
      for (const std::size_t sample : picked) sum += scores[seed][sample];
      seeds_mean += means.by_seed[seed] / static_cast<double>(n_seeds);
      samples_part += (sum / static_cast<double>(n_samples) - means.by_seed[seed]) / static_cast<double>(n_seeds);
    }
    value = means.all + widen * (seeds_mean - means.all) + samples_part;
  }
  return {quantile(drawn, 0.025), quantile(drawn, 0.975)};
}

}  // namespace

SeedSpread seed_spread(const std::vector<std::vector<double>>& scores, const RngKey& key, int resamples) {
  SeedSpread out;
  if (scores.empty() || scores.front().empty()) return out;
  for (const std::vector<double>& seed : scores) {
    FATHOM_CHECK(seed.size() == scores.front().size(), "every seed answers the same samples");
  }
  const TwoWayMeans means = two_way_means(scores);
  out.n_seeds = scores.size();
  out.n_samples = static_cast<std::int64_t>(means.by_sample.size());
  out.mean = means.all;
  if (out.n_samples < 2) return out;
  out.sampling_sd = std::sqrt(sampling_variance(scores, means));
  if (out.n_seeds < 2) return out;
  out.seed_sd = std::sqrt(seed_variance(scores, means));
  if (out.n_seeds >= kMinSeeds && resamples > 0) out.interval = two_level_interval(scores, means, key, resamples);
  return out;
}

}  // namespace fathom::analysis
