#pragma once
// Tests of two settings on the same samples: is what differs more than chance? (Tasks specification, section 5.)

#include <cstdint>
#include <vector>

#include "harness/core/random.h"

namespace fathom::analysis {

/// Exact McNemar test (McNemar 1947) of 0/1 scores: two-sided binomial on the discordant pairs,
///
///   p = min(1, 2 sum_{k <= min(b, c)} C(b + c, k) / 2^(b + c))
///
/// \param n_only_baseline   b >= 0, pairs that the baseline alone answered.
/// \param n_only_candidate  c >= 0, pairs that the candidate alone answered.
/// \return 1 where nothing is discordant.
double mcnemar_exact(std::int64_t n_only_baseline, std::int64_t n_only_candidate);

struct SignFlipSettings {
  std::int64_t permutations = 10000;           ///< drawn where the exact distribution is out of reach
  std::int64_t max_exact_steps = 200'000'000;  ///< additions that the exact distribution may cost
};

/// Two-sided sign-flip permutation test: under the hypothesis each difference is as likely as its negative, and
///
///   p = P(|sum of +-d_i| >= |sum of d_i|)
///
/// Exact over all 2^n patterns for n <= 13 and wherever the differences are multiples of a common step (scores are
/// shares of few answers, so they nearly always are); else drawn, with one added to the count and to the number of
/// draws (Phipson and Smyth 2010). With one 0/1 score a sample it equals the exact McNemar test.
///
/// \param differences  one a sample (a cluster): its scores summed over depths, candidate minus baseline.
/// \return 1 where all are 0. A p below 1e-30 is an upper bound.
double sign_flip_p(const std::vector<double>& differences, const RngKey& key, const SignFlipSettings& settings = {});

/// Holm's step-down adjustment (Holm 1979): in the order of p, adjusted p_(k) = max_{j <= k} min(1, (m - j + 1) p_(j)).
/// Rejecting where the adjusted p is below alpha keeps the chance of any false alarm in the family below alpha.
std::vector<double> holm_adjust(const std::vector<double>& p_values);

}  // namespace fathom::analysis
