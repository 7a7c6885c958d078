#include "harness/analysis/scorecard.h"

#include <cmath>

#include "tests/support/catch.h"

namespace fathom::analysis {

using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

namespace {

/// theta^(-2i/d), every frequency divided by a factor.
TheoryInput rotation(double base, int rotary_dim, double factor) {
  TheoryInput input;
  for (int i = 0; i < rotary_dim / 2; ++i) input.inv_freq.push_back(std::pow(base, -2.0 * i / rotary_dim) / factor);
  input.pretrained_base = base;
  input.trained = 256;
  input.tested = 2048;
  return input;
}

}  // namespace

TEST_CASE("rank_correlation: worked cases with and without ties", "[analysis][theory]") {
  CHECK_THAT(rank_correlation({1, 2, 3, 4}, {10, 20, 30, 40}).value(), WithinAbs(1, 1e-12));
  CHECK_THAT(rank_correlation({1, 2, 3, 4}, {4, 3, 2, 1}).value(), WithinAbs(-1, 1e-12));
  // 1 - 6 sum d^2 / (n (n^2 - 1)) with d = 0, 1, 1, 0 and n = 4.
  CHECK_THAT(rank_correlation({1, 2, 3, 4}, {1, 3, 2, 4}).value(), WithinAbs(0.8, 1e-12));
  // Ranks 1.5 1.5 3 against 1 2 3: (0.5 + 0 + 1) / sqrt(1.5 * 2).
  CHECK_THAT(rank_correlation({5, 5, 9}, {1, 2, 3}).value(), WithinAbs(1.5 / std::sqrt(3.0), 1e-12));
  CHECK_FALSE(rank_correlation({1, 2}, {1, 2}));
  CHECK_FALSE(rank_correlation({1, 1, 1}, {1, 2, 3}));
}

TEST_CASE("predict_reach: plain RoPE has seen its angles up to the trained length, interpolation factor times it",
          "[analysis][theory]") {
  CHECK_THAT(predict_reach(rotation(10000, 32, 1)).seen_angles.value(), WithinRel(256.0, 1e-9));
  CHECK_THAT(predict_reach(rotation(10000, 32, 8)).seen_angles.value(), WithinRel(2048.0, 1e-9));
}

TEST_CASE("predict_reach: T_extra of the list's own base, none for a list without one", "[analysis][theory]") {
  // d_extra = 2 ceil(16 ln(256 / 2 pi) / ln 10000) = 14: T_extra = 2 pi 10000^(14 / 32).
  const TheoryPrediction plain = predict_reach(rotation(10000, 32, 1));
  CHECK_THAT(plain.extrapolation.value(), WithinRel(2 * 3.14159265358979 * std::pow(10000.0, 14.0 / 32), 1e-9));
  CHECK_FALSE(predict_reach(rotation(10000, 32, 8)).extrapolation);
  CHECK(plain.n_channels == 16);
}

TEST_CASE("predict_reach: ALiBi's horizon, and nothing of what is not there", "[analysis][theory]") {
  TheoryInput alibi;
  alibi.slopes = {0.25, 0.0625};
  const TheoryPrediction prediction = predict_reach(alibi);
  CHECK_THAT(prediction.alibi_horizon.value(), WithinRel(std::log(1000.0) / 0.0625, 1e-9));
  CHECK_FALSE(prediction.seen_angles);
  CHECK_FALSE(predict_reach({}).alibi_horizon);
}

}  // namespace fathom::analysis
