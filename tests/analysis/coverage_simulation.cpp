#include "tests/analysis/coverage_simulation.h"

#include <algorithm>
#include <cmath>

#include "harness/analysis/effective_context.h"
#include "harness/analysis/paired_bootstrap.h"
#include "harness/analysis/seed_spread.h"
#include "harness/core/stats.h"

namespace fathom::test {
namespace {

constexpr int kDepths = 11;
/// With this chance a sample's depth repeats the sample's common outcome, so that depths correlate by its square.
constexpr double kAlike = 0.5;
constexpr int kResamples = 1000;

bool chance(RngStream& rng, double p) {
  return rng.uniform_double() < p;
}

std::vector<double> accuracies() {
  std::vector<double> out;
  for (int percent = 5; percent <= 95; percent += 5) out.push_back(percent / 100.0);
  return out;
}

/// Outcomes of one sample's depths with this accuracy.
std::vector<double> clustered_outcomes(RngStream& rng, double accuracy) {
  const double common = chance(rng, accuracy) ? 1.0 : 0.0;
  std::vector<double> out;
  for (int d = 0; d < kDepths; ++d) out.push_back(chance(rng, kAlike) ? common : chance(rng, accuracy) ? 1.0 : 0.0);
  return out;
}

analysis::LengthScores clustered_length(RngStream& rng, std::int64_t length, double accuracy, std::int64_t n_samples) {
  analysis::LengthScores scores;
  scores.length_tokens = length;
  for (std::int64_t i = 0; i < n_samples; ++i) scores.by_sample.push_back(clustered_outcomes(rng, accuracy));
  return scores;
}

void count(Coverage& coverage, bool held) {
  ++coverage.n_tries;
  if (held) ++coverage.n_held;
}

/// Place of an effective value among lengths 128 * 2^k: 0 = left of the first.
int place_of(const analysis::EffectiveValue& value) {
  return value.tokens ? static_cast<int>(std::lround(std::log2(static_cast<double>(*value.tokens) / 128))) + 1 : 0;
}

bool holds(const analysis::EffectiveValue& truth, const std::optional<analysis::EffectiveValue>& low,
           const std::optional<analysis::EffectiveValue>& high) {
  return low && high && place_of(*low) <= place_of(truth) && place_of(truth) <= place_of(*high);
}

}  // namespace

double Coverage::error() const {
  return std::sqrt(share() * (1 - share()) / static_cast<double>(n_tries));
}

double exact_wilson_coverage(std::int64_t n_samples) {
  double total = 0;
  for (const double p : accuracies()) {
    for (std::int64_t k = 0; k <= n_samples; ++k) {
      const Interval interval = wilson_interval(static_cast<double>(k), n_samples);
      if (p < interval.low || p > interval.high) continue;
      const auto n = static_cast<double>(n_samples);
      const auto successes = static_cast<double>(k);
      total += std::exp(std::lgamma(n + 1) - std::lgamma(successes + 1) - std::lgamma(n - successes + 1) +
                        successes * std::log(p) + (n - successes) * std::log(1 - p));
    }
  }
  return total / static_cast<double>(accuracies().size());
}

Coverage clustered_mean_coverage(std::int64_t n_samples, std::int64_t n_tries) {
  Coverage out{"mean of a length, 11 depths"};
  analysis::RuleSettings rules;
  rules.resamples = kResamples;
  for (const double accuracy : accuracies()) {
    for (std::int64_t i = 0; i < n_tries; ++i) {
      const RngKey key = RngKey("coverage|mean").child(std::lround(100 * accuracy)).child(i);
      RngStream rng(key);
      const auto result = analysis::estimate_effective_context({{clustered_length(rng, 128, accuracy, n_samples)}},
                                                               rules, key.child("bootstrap"));
      const analysis::LengthScore& score = result.curve.front();
      count(out, *score.low <= 100 * accuracy && 100 * accuracy <= *score.high);
    }
  }
  return out;
}

Coverage paired_difference_coverage(std::int64_t n_samples, std::int64_t n_tries) {
  Coverage out{"difference of two settings, 11 depths"};
  for (const double accuracy : accuracies()) {
    for (std::int64_t i = 0; i < n_tries; ++i) {
      const RngKey key = RngKey("coverage|difference").child(std::lround(100 * accuracy)).child(i);
      RngStream rng(key);
      // An answer of the baseline is lost with this chance, so the true difference is -accuracy * lost.
      const double lost = 0.02 + 0.08 * rng.uniform_double();
      analysis::PairedLength length;
      for (std::int64_t s = 0; s < n_samples; ++s) {
        analysis::PairedSample sample;
        for (const double baseline : clustered_outcomes(rng, accuracy)) {
          sample.baseline_sum += baseline;
          sample.candidate_sum += chance(rng, lost) ? 0 : baseline;
          ++sample.n_values;
        }
        length.samples.push_back(sample);
      }
      const auto result = analysis::paired_difference({&length}, key.child("bootstrap"), kResamples);
      const double truth = -accuracy * lost;
      count(out, result.interval && result.interval->low <= truth && truth <= result.interval->high);
    }
  }
  return out;
}

EffectiveCoverage effective_context_coverage(std::int64_t n_samples, std::int64_t n_tries) {
  EffectiveCoverage out{{"effective context, absolute rule"}, {"effective context, relative rule"}};
  constexpr int kLengths = 6;
  analysis::RuleSettings rules;
  rules.base_lengths = {128, 256};
  rules.resamples = kResamples;
  for (std::int64_t i = 0; i < n_tries; ++i) {
    const RngKey key = RngKey("coverage|effective").child(i);
    RngStream rng(key);
    const double middle = 0.5 + 6 * rng.uniform_double();
    const double top = 0.9 + 0.1 * rng.uniform_double();
    std::vector<analysis::LengthPoint> truth;
    std::vector<analysis::LengthScores> scores;
    for (int l = 0; l < kLengths; ++l) {
      const double accuracy = top / (1 + std::exp(2.5 * (l - middle)));
      truth.push_back({std::int64_t{128} << l, 100 * accuracy});
      scores.push_back(clustered_length(rng, std::int64_t{128} << l, accuracy, n_samples));
    }
    const analysis::BothRules actual = analysis::effective_by_both_rules(truth, rules);
    const auto result = analysis::estimate_effective_context({scores}, rules, key.child("bootstrap"));
    if (actual.absolute.kind != analysis::Censoring::kNone) {
      count(out.absolute, holds(actual.absolute, result.absolute_low, result.absolute_high));
    }
    if (actual.relative.kind != analysis::Censoring::kNone) {
      count(out.relative, holds(actual.relative, result.relative_low, result.relative_high));
    }
  }
  return out;
}

Coverage seed_mean_coverage(std::int64_t n_seeds, std::int64_t n_samples, std::int64_t n_tries) {
  Coverage out{"mean over training seeds"};
  for (std::int64_t i = 0; i < n_tries; ++i) {
    const RngKey key = RngKey("coverage|seeds").child(n_seeds).child(i);
    RngStream rng(key);
    const double centre = 0.2 + 0.6 * rng.uniform_double();
    std::vector<double> common;
    for (std::int64_t s = 0; s < n_samples; ++s) common.push_back(rng.uniform_double());
    std::vector<std::vector<double>> scores;
    for (std::int64_t seed = 0; seed < n_seeds; ++seed) {
      const double accuracy = std::clamp(centre + 0.05 * rng.normal(), 0.0, 1.0);
      scores.emplace_back();
      for (std::int64_t s = 0; s < n_samples; ++s) {
        // Half of the samples are as hard for every seed, the other half are luck.
        const double draw = s % 2 == 0 ? common[static_cast<std::size_t>(s)] : rng.uniform_double();
        scores.back().push_back(draw < accuracy ? 1.0 : 0.0);
      }
    }
    const auto spread = analysis::seed_spread(scores, key.child("bootstrap"), kResamples);
    count(out, spread.interval && spread.interval->low <= centre && centre <= spread.interval->high);
  }
  return out;
}

}  // namespace fathom::test
