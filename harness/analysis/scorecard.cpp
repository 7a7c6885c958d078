#include "harness/analysis/scorecard.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/core/error.h"
#include "harness/rope/angle.h"
#include "harness/rope/prediction.h"
#include "harness/rope/rope_scaling.h"
#include "harness/rope/theory.h"

namespace fathom::analysis {
namespace {

constexpr double kAlibiShare = 1e-3;

/// theta of a list theta^(-2i/d), or nothing where it is no such list.
std::optional<double> base_of_list(const std::vector<double>& inv_freq) {
  if (inv_freq.size() < 2 || inv_freq[0] != 1.0 || inv_freq[1] <= 0) return std::nullopt;
  const auto n = static_cast<double>(inv_freq.size());
  const double base = std::pow(inv_freq[1], -n);
  for (std::size_t i = 0; i < inv_freq.size(); ++i) {
    const double expected = std::pow(base, -static_cast<double>(i) / n);
    if (std::abs(inv_freq[i] - expected) > 1e-9 * expected) return std::nullopt;
  }
  return base;
}

std::optional<double> seen_angles_reach(const TheoryInput& input) {
  const auto rotary_dim = static_cast<std::int64_t>(2 * input.inv_freq.size());
  const std::vector<double> pretrained = rope::default_inv_freq(rotary_dim, input.pretrained_base);
  const auto trained = static_cast<double>(input.trained);
  std::optional<double> reach;
  for (std::size_t i = 0; i < pretrained.size(); ++i) {
    if (pretrained[i] * trained >= rope::kTwoPi || input.inv_freq[i] <= 0) continue;
    const double here = trained * pretrained[i] / input.inv_freq[i];
    reach = std::min(reach.value_or(here), here);
  }
  return reach;
}

/// Mean rank of each value, 1 = smallest.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<double> ranks;
  for (const double value : values) {
    double n_below = 0;
    double n_equal = 0;
    for (const double other : values) {
      n_below += other < value ? 1 : 0;
      n_equal += other == value ? 1 : 0;
    }
    ranks.push_back(n_below + (n_equal + 1) / 2);
  }
  return ranks;
}

}  // namespace

TheoryPrediction predict_reach(const TheoryInput& input) {
  TheoryPrediction out;
  if (!input.slopes.empty()) {
    const double mildest = *std::min_element(input.slopes.begin(), input.slopes.end());
    if (mildest > 0) out.alibi_horizon = rope::alibi_horizon(mildest, kAlibiShare);
  }
  if (input.inv_freq.empty() || input.pretrained_base <= 1 || input.trained < 7 || input.tested < 7) return out;
  const rope::RotationPrediction rotation =
      rope::predict_rotation({input.inv_freq, input.n_still, input.pretrained_base, input.trained, input.tested},
                             base_of_list(input.inv_freq));
  out.n_channels = rotation.n_channels;
  out.wrapped_trained = rotation.wrapped_trained;
  out.seen_angles = seen_angles_reach(input);
  out.extrapolation = rotation.extrapolation;
  out.critical_base = rotation.critical_base;
  if (rotation.first_negative) out.base_bound = static_cast<double>(*rotation.first_negative);
  return out;
}

std::optional<double> rank_correlation(const std::vector<double>& x, const std::vector<double>& y) {
  FATHOM_CHECK(x.size() == y.size(), "rank_correlation of pairs");
  if (x.size() < 3) return std::nullopt;
  const std::vector<double> rank_x = ranks_of(x);
  const std::vector<double> rank_y = ranks_of(y);
  const double centre = (static_cast<double>(x.size()) + 1) / 2;
  double xy = 0;
  double xx = 0;
  double yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (rank_x[i] - centre) * (rank_y[i] - centre);
    xx += (rank_x[i] - centre) * (rank_x[i] - centre);
    yy += (rank_y[i] - centre) * (rank_y[i] - centre);
  }
  if (xx == 0 || yy == 0) return std::nullopt;
  return xy / std::sqrt(xx * yy);
}

}  // namespace fathom::analysis
