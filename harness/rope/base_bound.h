#pragma once
// The base's lower bound of Men et al. 2024 ("Base of RoPE Bounds Context Length", arXiv 2405.14591): up to which
// distance a similar key beats a random one on average.

#include <cstdint>
#include <optional>
#include <vector>

namespace fathom::rope {

/// Where searches for a negative advantage end.
constexpr std::int64_t kAdvantageSearchEnd = INT64_C(1) << 21;

/// B(m) = n_still + sum_i cos(m theta_i): the expected advantage of a similar key over a random one at distance m,
/// divided by 2 sigma^2 (theorem 4.1).
///
/// \param n_still  channels of the head that are not rotated; each counts as cos 0 = 1.
double similar_key_advantage(const std::vector<double>& inv_freq, std::int64_t n_still, std::int64_t distance);

/// Smallest m with B(m) < 0, or nothing below `end`. All distances are tried: B is not monotone, in m or in the base.
std::optional<std::int64_t> first_negative_advantage(const std::vector<double>& inv_freq, std::int64_t n_still = 0,
                                                     std::int64_t end = kAdvantageSearchEnd);

/// B(m) / B(0) at each distance: how the expected score decays.
std::vector<double> decay_curve(const std::vector<double>& inv_freq, std::int64_t n_still,
                                const std::vector<std::int64_t>& distances);

/// The paper's fit of its bounds, 0.0424 L^1.628, for d = 128.
double fitted_base_bound(std::int64_t context);
/// L / 0.6165: the bound's limit for long contexts (kexue.fm/archives/10122); far below it at lengths in use.
double asymptotic_base_bound(std::int64_t context);

}  // namespace fathom::rope
