#include "harness/rope/base_bound.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace fathom::rope {
namespace {

// Distances per block: the table of a block's cosines and sines (64 channels: 256 KiB) stays in the second-level cache.
constexpr std::size_t kBlockDistances = 256;
// First zero of the cosine integral Ci: with ever more channels B(m) tends to a multiple of -Ci(m / b).
constexpr double kCosineIntegralZero = 0.61650548562071624;
using BlockSums = std::array<double, kBlockDistances>;

/// cos(t theta_i) and sin(t theta_i) for t within a block, channel by channel.
struct BlockAngles {
  explicit BlockAngles(const std::vector<double>& inv_freq) {
    for (const double theta : inv_freq) {
      for (std::size_t t = 0; t < kBlockDistances; ++t) {
        cos.push_back(std::cos(static_cast<double>(t) * theta));
        sin.push_back(std::sin(static_cast<double>(t) * theta));
      }
    }
  }
  std::vector<double> cos, sin;
};

/// B(first + t) for t within a block, by cos(x + y) = cos x cos y - sin x sin y: one cosine per channel and block, and
/// a sum over t that the compiler can do several at a time.
void sum_block(const std::vector<double>& inv_freq, const BlockAngles& angles, double n_still, std::int64_t first,
               BlockSums& sums) {
  sums.fill(n_still);
  for (std::size_t i = 0; i < inv_freq.size(); ++i) {
    const double angle = static_cast<double>(first) * inv_freq[i];
    const double c = std::cos(angle);
    const double s = std::sin(angle);
    const double* cos_t = angles.cos.data() + i * kBlockDistances;
    const double* sin_t = angles.sin.data() + i * kBlockDistances;
    for (std::size_t t = 0; t < kBlockDistances; ++t) sums[t] += c * cos_t[t] - s * sin_t[t];
  }
}

}  // namespace

double similar_key_advantage(const std::vector<double>& inv_freq, std::int64_t n_still, std::int64_t distance) {
  auto sum = static_cast<double>(n_still);
  for (const double theta : inv_freq) sum += std::cos(static_cast<double>(distance) * theta);
  return sum;
}

std::optional<std::int64_t> first_negative_advantage(const std::vector<double>& inv_freq, std::int64_t n_still,
                                                     std::int64_t end) {
  const std::int64_t n_frozen = std::count(inv_freq.begin(), inv_freq.end(), 0.0);
  const auto n_turning = static_cast<std::int64_t>(inv_freq.size()) - n_frozen;
  if (n_still + n_frozen >= n_turning) return std::nullopt;  // no sum of n_turning cosines is below -n_turning
  const BlockAngles angles(inv_freq);
  BlockSums sums{};
  for (std::int64_t first = 0; first < end; first += static_cast<std::int64_t>(kBlockDistances)) {
    sum_block(inv_freq, angles, static_cast<double>(n_still), first, sums);
    const auto negative = std::find_if(sums.begin(), sums.end(), [](double sum) { return sum < 0; });
    if (negative == sums.end()) continue;
    const std::int64_t distance = first + (negative - sums.begin());
    return distance < end ? std::optional<std::int64_t>(distance) : std::nullopt;
  }
  return std::nullopt;
}

std::vector<double> decay_curve(const std::vector<double>& inv_freq, std::int64_t n_still,
                                const std::vector<std::int64_t>& distances) {
  const double at_zero = similar_key_advantage(inv_freq, n_still, 0);
  std::vector<double> curve;
  curve.reserve(distances.size());
  for (const std::int64_t distance : distances) {
    curve.push_back(similar_key_advantage(inv_freq, n_still, distance) / at_zero);
  }
  return curve;
}

double fitted_base_bound(std::int64_t context) {
  return 0.0424 * std::pow(static_cast<double>(context), 1.628);
}

double asymptotic_base_bound(std::int64_t context) {
  return static_cast<double>(context) / kCosineIntegralZero;
}

}  // namespace fathom::rope
