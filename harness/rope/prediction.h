#pragma once
// Everything that one rotation predicts about one length, in the order of the report line.

#include <cstdint>
#include <optional>
#include <vector>

namespace fathom::rope {

struct RotationQuestion {
  std::vector<double> inv_freq;    ///< in force at the tested length, radians per token
  std::int64_t n_still = 0;        ///< channels of the head outside the rotation
  double pretrained_base = 10000;  ///< of pretraining, before any change of base
  std::int64_t trained = 0;        ///< tokens
  std::int64_t tested = 0;         ///< tokens; the farthest distance a query sees is one less
};

struct RotationPrediction {
  std::int64_t n_channels = 0;  ///< that turn
  std::int64_t n_still = 0;     ///< that do not: outside the rotation, or of frequency 0
  double shortest_period = 0;   ///< tokens
  double longest_period = 0;
  std::int64_t wrapped_trained = 0;            ///< channels with a whole period within the trained length
  std::int64_t wrapped_tested = 0;             ///< … within the tested one
  std::int64_t unseen_channels = 0;            ///< that reach angles beyond training without having seen a whole period
  std::int64_t critical_dimension = 0;         ///< d_extra, of the pretrained base
  std::optional<double> extrapolation;         ///< T_extra of the list's own base, where it has one; tokens
  std::optional<double> critical_base;         ///< beta_0 for tuning at the tested length
  std::optional<std::int64_t> first_negative;  ///< first m with B(m) < 0, rotated channels alone
  std::optional<std::int64_t> first_negative_head;  ///< the same with the channels that stand still
  std::int64_t distinct_bf16 = 0;                   ///< different positions if they were bf16
  std::int64_t distinct_fp16 = 0;
  std::int64_t subnormal_fp16 = 0;  ///< frequencies that lose digits in fp16
  double float32_cosine_error = 0;  ///< worst channel at the last tested position, frequencies and angles in float32
};

/// \param base  theta in force, or nothing where a list has no single one (searched divisors).
RotationPrediction predict_rotation(const RotationQuestion& question, std::optional<double> base);

}  // namespace fathom::rope
