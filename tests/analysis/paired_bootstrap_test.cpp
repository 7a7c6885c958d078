#include "harness/analysis/paired_bootstrap.h"

#include <cmath>

#include "harness/analysis/resample.h"
#include "tests/support/catch.h"

namespace fathom::analysis {
namespace {

using Catch::Matchers::WithinAbs;

/// One value a sample: of n samples the first `baseline` are right in the baseline, the first `candidate` in the
/// candidate.
PairedLength zero_one_pairs(std::int64_t length, int baseline, int candidate, int n) {
  PairedLength out;
  out.length_tokens = length;
  for (int i = 0; i < n; ++i) out.samples.push_back({i < baseline ? 1.0 : 0.0, i < candidate ? 1.0 : 0.0, 1});
  return out;
}

RuleSettings rules_with_base(std::vector<std::int64_t> base_lengths) {
  RuleSettings rules;
  rules.base_lengths = std::move(base_lengths);
  return rules;
}

}  // namespace

TEST_CASE("draw_binomial: mean and variance of small and large counts", "[analysis][paired]") {
  RngStream rng(RngKey("binomial"));
  for (const auto& [n, p] :
       std::vector<std::pair<std::int64_t, double>>{{1, 0.3}, {20, 0.05}, {450, 0.5}, {1700, 0.8}}) {
    double sum = 0;
    double squares = 0;
    const int n_draws = 20000;
    for (int i = 0; i < n_draws; ++i) {
      const auto k = static_cast<double>(draw_binomial(rng, n, p));
      CHECK((k >= 0 && k <= static_cast<double>(n)));
      sum += k;
      squares += k * k;
    }
    const double mean = sum / n_draws;
    const double expected = static_cast<double>(n) * p;
    const double variance = expected * (1 - p);
    // Five standard errors of a mean, and of a variance (relative error about sqrt(2 / draws) for many tries).
    CHECK_THAT(mean, WithinAbs(expected, 5 * std::sqrt(variance / n_draws)));
    CHECK_THAT(squares / n_draws - mean * mean, WithinAbs(variance, 0.06 * variance));
  }
  CHECK(draw_binomial(rng, 0, 0.5) == 0);
  CHECK(draw_binomial(rng, 9, 0) == 0);
  CHECK(draw_binomial(rng, 9, 1) == 9);
}

TEST_CASE("OutcomeGroups: equal rows are one group, a draw has as many samples", "[analysis][paired]") {
  const OutcomeGroups groups({{1, 1}, {0, 1}, {1, 1}, {0, 1}, {1, 1}});
  CHECK(groups.n_groups() == 2);
  CHECK(groups.n_samples() == 5);
  std::vector<double> sums;
  groups.actual_sums(sums);
  CHECK(sums == std::vector<double>{3, 5});
  RngStream rng(RngKey("groups"));
  double total = 0;
  for (int i = 0; i < 10000; ++i) {
    groups.draw_sums(rng, sums);
    CHECK(sums[1] == 5);
    total += sums[0];
  }
  // Mean 3, variance 5 * 0.6 * 0.4: four standard errors.
  CHECK_THAT(total / 10000, WithinAbs(3, 4 * std::sqrt(1.2 / 10000)));
}

TEST_CASE("paired_difference: means, difference and p of one task", "[analysis][paired]") {
  PairedLength length = zero_one_pairs(256, 20, 12, 25);
  length.samples.push_back({});  // nothing in common: left out
  const PairedDifference result = paired_difference({&length}, RngKey("test"));
  CHECK(result.n_samples == 25);
  CHECK(result.n_values == 25);
  CHECK_THAT(result.baseline, WithinAbs(0.8, 1e-12));
  CHECK_THAT(result.candidate, WithinAbs(0.48, 1e-12));
  CHECK_THAT(result.difference, WithinAbs(-0.32, 1e-12));
  CHECK_THAT(result.p, WithinAbs(2.0 / 256, 1e-12));  // 8 discordant, all one way
  REQUIRE(result.interval);
  // Standard error of the paired difference: sqrt((8/25 - 0.32^2) / 24) = 0.0952; the interval is a little wider.
  CHECK_THAT(result.interval->low, WithinAbs(-0.32 - 1.96 * 0.0952, 0.06));
  CHECK_THAT(result.interval->high, WithinAbs(-0.32 + 1.96 * 0.0952, 0.06));
}

TEST_CASE("paired_difference: depths of a sample are one draw", "[analysis][paired]") {
  // Ten samples whose eleven depths fall together: as significant as ten samples, not as 110.
  PairedLength length;
  for (int i = 0; i < 10; ++i) length.samples.push_back({11, i < 4 ? 0.0 : 11.0, 11});
  const PairedDifference result = paired_difference({&length}, RngKey("test"));
  CHECK(result.n_values == 110);
  CHECK_THAT(result.p, WithinAbs(2.0 / 16, 1e-12));
}

TEST_CASE("paired_difference: tasks weigh equally whatever their number of values", "[analysis][paired]") {
  const PairedLength few = zero_one_pairs(256, 10, 5, 10);
  PairedLength many;
  for (int i = 0; i < 10; ++i) many.samples.push_back({11, 11, 11});
  const PairedDifference result = paired_difference({&few, &many}, RngKey("test"));
  CHECK_THAT(result.baseline, WithinAbs(1, 1e-12));
  CHECK_THAT(result.candidate, WithinAbs(0.75, 1e-12));
  CHECK_THAT(result.p, WithinAbs(0.0625, 1e-12));  // five discordant samples of the first task decide
}

TEST_CASE("paired_difference: equal answers are not certain, one sample has no interval", "[analysis][paired]") {
  const PairedLength equal = zero_one_pairs(256, 10, 10, 10);
  const PairedDifference result = paired_difference({&equal}, RngKey("test"));
  CHECK(result.p == 1);
  REQUIRE(result.interval);
  // Half an unseen flip each way among ten answers.
  CHECK(result.interval->low < -0.1);
  CHECK(result.interval->low >= -0.4);
  CHECK(result.interval->high > 0.1);
  CHECK(result.interval->high <= 0.4);
  const PairedLength one = zero_one_pairs(256, 1, 0, 1);
  CHECK_FALSE(paired_difference({&one}, RngKey("test")).interval);
}

TEST_CASE("paired_effective_context: a plain fall of one step", "[analysis][paired]") {
  const PairedTask task = {zero_one_pairs(128, 50, 50, 50), zero_one_pairs(256, 50, 20, 50),
                           zero_one_pairs(512, 10, 10, 50)};
  const EffectiveChanges change = paired_effective_context({task}, rules_with_base({128, 256}), RngKey("test"));
  CHECK(format_effective(change.absolute.baseline) == "256");
  CHECK(format_effective(change.absolute.candidate) == "128");
  CHECK(change.absolute.steps == -1);
  CHECK(change.absolute.n_resamples == 20000);
  // 20 of 50 right never reach 85.6 in a resample: P(lower) = 1.
  CHECK_THAT(change.absolute.p, WithinAbs(2.0 / 20001, 1e-12));
  CHECK(change.relative.steps == -1);
  CHECK(change.relative.baseline_base == std::optional<double>(100.0));
}

TEST_CASE("paired_effective_context: a fall by one answer is given up early", "[analysis][paired]") {
  // 43/50 = 86 passes 85.6, 42/50 = 84 does not; half of the resamples stand the other way.
  const PairedTask task = {zero_one_pairs(128, 50, 50, 50), zero_one_pairs(256, 43, 42, 50)};
  const EffectiveChanges change = paired_effective_context({task}, rules_with_base({128}), RngKey("test"));
  CHECK(change.absolute.steps == -1);
  CHECK(change.absolute.p > 0.5);
  CHECK(change.absolute.n_resamples == 2000);
}

TEST_CASE("paired_effective_context: nothing lower, nothing drawn", "[analysis][paired]") {
  const PairedTask task = {zero_one_pairs(128, 50, 50, 50), zero_one_pairs(256, 10, 50, 50)};
  const EffectiveChanges change = paired_effective_context({task}, rules_with_base({128}), RngKey("test"));
  CHECK(change.absolute.steps == 1);
  CHECK(change.absolute.p == 1);
  CHECK(change.absolute.n_resamples == 0);
  CHECK(change.absolute.candidate.kind == Censoring::kRight);
  CHECK(paired_effective_context({}, rules_with_base({128}), RngKey("test")).absolute.p == 1);
}

TEST_CASE("paired_effective_context: several tasks are averaged on the lengths that all have", "[analysis][paired]") {
  const PairedTask first = {zero_one_pairs(128, 50, 50, 50), zero_one_pairs(256, 50, 50, 50)};
  const PairedTask second = {zero_one_pairs(256, 50, 0, 50)};
  const EffectiveChanges change = paired_effective_context({first, second}, rules_with_base({256}), RngKey("test"));
  CHECK(change.absolute.baseline.kind == Censoring::kRight);
  CHECK(format_effective(change.absolute.candidate) == "<256");
  CHECK(change.absolute.steps == -1);
}

}  // namespace fathom::analysis
