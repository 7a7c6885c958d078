#include "harness/analysis/paired_tests.h"

#include <cmath>

#include "tests/support/catch.h"

namespace fathom::analysis {
namespace {

using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

/// Darwin's maize: differences in height of 15 pairs, eighths of an inch. Fisher (1935), The Design of Experiments,
/// section 21: of the 32,768 sign patterns 863 give a sum of 314 or more, so that both sides together have 1,726.
const std::vector<double> kDarwin = {49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48};

std::vector<double> scaled(std::vector<double> values, double factor) {
  for (double& value : values) value *= factor;
  return values;
}

std::vector<double> signs(int n_plus, int n_minus) {
  std::vector<double> out(static_cast<std::size_t>(n_plus), 1.0);
  out.insert(out.end(), static_cast<std::size_t>(n_minus), -1.0);
  return out;
}

double flip(const std::vector<double>& differences) {
  return sign_flip_p(differences, RngKey("test"));
}

}  // namespace

TEST_CASE("mcnemar: the worked pairs of the specification", "[analysis][paired]") {
  CHECK_THAT(mcnemar_exact(1, 9), WithinAbs(22.0 / 1024, 1e-12));
  CHECK_THAT(mcnemar_exact(9, 1), WithinAbs(22.0 / 1024, 1e-12));
  CHECK_THAT(mcnemar_exact(3, 12), WithinAbs(1152.0 / 32768, 1e-12));
  CHECK_THAT(mcnemar_exact(0, 5), WithinAbs(0.0625, 1e-12));
}

TEST_CASE("mcnemar: nothing discordant, ties and many pairs", "[analysis][paired]") {
  CHECK(mcnemar_exact(0, 0) == 1);
  CHECK(mcnemar_exact(5, 5) == 1);
  // 2 * sum_{k <= 400} C(1000, k) / 2^1000 with whole numbers.
  CHECK_THAT(mcnemar_exact(400, 600), WithinRel(2.7284641560660184e-10, 1e-7));
  CHECK_THAT(mcnemar_exact(5000, 5100), WithinRel(0.3245815463313939, 1e-7));
}

TEST_CASE("sign flip: all patterns of a few samples", "[analysis][paired]") {
  // +-1 +-2 +-3: only the two patterns of equal signs reach 6.
  CHECK(flip({1, 2, 3}) == 0.25);
  // |-1 + 2 + 3| = 4 is reached by 6, 4, -4, -6.
  CHECK(flip({-1, 2, 3}) == 0.5);
  CHECK(flip({0, 0, 0}) == 1);
  CHECK(flip({}) == 1);
  CHECK(flip({1, -1}) == 1);
}

TEST_CASE("sign flip: zeros do not dilute", "[analysis][paired]") {
  CHECK(flip({0, 1, 0, 2, 3, 0}) == 0.25);
}

TEST_CASE("sign flip: one 0/1 score a sample is the exact McNemar test", "[analysis][paired]") {
  CHECK_THAT(flip(signs(4, 1)), WithinAbs(mcnemar_exact(4, 1), 1e-12));
  CHECK_THAT(flip(signs(12, 3)), WithinAbs(mcnemar_exact(12, 3), 1e-12));
  CHECK_THAT(flip(signs(40, 60)), WithinRel(mcnemar_exact(40, 60), 1e-9));
  CHECK_THAT(flip(signs(700, 600)), WithinRel(mcnemar_exact(700, 600), 1e-9));
}

TEST_CASE("sign flip: Darwin's maize as Fisher counted it", "[analysis][paired]") {
  CHECK_THAT(flip(kDarwin), WithinAbs(1726.0 / 32768, 1e-12));
  CHECK_THAT(flip(scaled(kDarwin, -1)), WithinAbs(1726.0 / 32768, 1e-12));
  // Shares of a few answers are multiples of a common step too.
  CHECK_THAT(flip(scaled(kDarwin, 1.0 / 60)), WithinAbs(1726.0 / 32768, 1e-12));
}

TEST_CASE("sign flip: differences without a common step are drawn", "[analysis][paired]") {
  std::vector<double> odd = kDarwin;
  for (std::size_t i = 0; i < odd.size(); ++i) odd[i] += 1e-4 * std::sqrt(static_cast<double>(i) + 2);
  const double p = flip(odd);
  // Four standard errors of 10,000 draws at p = 0.0527.
  CHECK_THAT(p, WithinAbs(1726.0 / 32768, 4 * 0.00224));
  CHECK(std::abs(p * 10001 - std::round(p * 10001)) < 1e-6);
  CHECK(p == flip(odd));
  SignFlipSettings few;
  few.permutations = 99;
  CHECK(sign_flip_p(scaled(std::vector<double>(30, 1.0), 1), RngKey("test"), few) < 1e-8);
}

TEST_CASE("sign flip: a sum beyond any chance has a bound instead of 0", "[analysis][paired]") {
  const double p = flip(std::vector<double>(400, 1.0));
  CHECK(p > 0);
  CHECK(p < 1e-30);
}

TEST_CASE("holm: the worked family", "[analysis][paired]") {
  // R 4: p.adjust(c(.01, .04, .03, .005), "holm") is .03 .06 .06 .02.
  const std::vector<double> adjusted = holm_adjust({0.01, 0.04, 0.03, 0.005});
  CHECK_THAT(adjusted[0], WithinAbs(0.03, 1e-12));
  CHECK_THAT(adjusted[1], WithinAbs(0.06, 1e-12));
  CHECK_THAT(adjusted[2], WithinAbs(0.06, 1e-12));
  CHECK_THAT(adjusted[3], WithinAbs(0.02, 1e-12));
  CHECK(holm_adjust({0.5, 0.9}) == std::vector<double>{1, 1});
  CHECK(holm_adjust({}).empty());
}

}  // namespace fathom::analysis
