#include "harness/rope/prediction.h"

#include <algorithm>
#include <iterator>

#include "harness/rope/angle.h"
#include "harness/rope/base_bound.h"
#include "harness/rope/precision.h"
#include "harness/rope/rope_scaling.h"
#include "harness/rope/theory.h"

namespace fathom::rope {
namespace {

/// Channels that completed no period in training and turn farther within the tested length than they did then.
std::int64_t count_unseen(const RotationQuestion& question) {
  const auto rotary_dim = static_cast<std::int64_t>(2 * question.inv_freq.size());
  const std::vector<double> pretrained = default_inv_freq(rotary_dim, question.pretrained_base);
  std::int64_t n_unseen = 0;
  for (std::size_t i = 0; i < pretrained.size(); ++i) {
    const double seen = pretrained[i] * static_cast<double>(question.trained);
    const double reached = question.inv_freq[i] * static_cast<double>(question.tested);
    // Interpolation comes back to the same angle but for rounding.
    if (seen < kTwoPi && reached > seen * (1 + 1e-9)) ++n_unseen;
  }
  return n_unseen;
}

}  // namespace

RotationPrediction predict_rotation(const RotationQuestion& question, std::optional<double> base) {
  std::vector<double> turning;
  std::copy_if(question.inv_freq.begin(), question.inv_freq.end(), std::back_inserter(turning),
               [](double theta) { return theta > 0; });
  RotationPrediction out;
  out.n_channels = static_cast<std::int64_t>(turning.size());
  out.n_still = question.n_still + static_cast<std::int64_t>(question.inv_freq.size()) - out.n_channels;
  out.distinct_bf16 = distinct_positions(FloatFormat::kBfloat16, question.tested);
  out.distinct_fp16 = distinct_positions(FloatFormat::kFloat16, question.tested);
  if (turning.empty()) return out;
  const auto [slowest, fastest] = std::minmax_element(turning.begin(), turning.end());
  out.shortest_period = kTwoPi / *fastest;
  out.longest_period = kTwoPi / *slowest;
  out.wrapped_trained = wrapped_channels(turning, question.trained);
  out.unseen_channels = count_unseen(question);
  out.wrapped_tested = wrapped_channels(turning, question.tested);
  const auto rotary_dim = static_cast<std::int64_t>(2 * question.inv_freq.size());
  if (question.pretrained_base > 1) {
    out.critical_dimension = critical_dimension(rotary_dim, question.pretrained_base, question.trained);
    if (base) out.extrapolation = extrapolation_limit(*base, out.critical_dimension, rotary_dim);
    if (std::min(question.trained, question.tested) >= 7) {
      out.critical_base = critical_base(question.pretrained_base, question.trained, question.tested);
    }
  }
  out.first_negative = first_negative_advantage(turning);
  out.first_negative_head = out.n_still == 0 ? out.first_negative : first_negative_advantage(turning, out.n_still);
  out.subnormal_fp16 = cast_frequencies(turning, FloatFormat::kFloat16).n_subnormal;
  out.float32_cosine_error = cosine_error_of_float32_angles(turning, question.tested - 1);
  return out;
}

}  // namespace fathom::rope
