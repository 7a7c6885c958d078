#pragma once
// What number formats do to positions, frequencies and angles.

#include <cstdint>
#include <string_view>
#include <vector>

namespace fathom::rope {

enum class FloatFormat {
  kBfloat16,  ///< 8 significant bits
  kFloat16,   ///< 11 significant bits, subnormal below 2^-14, infinite from 65520 on
  kFloat32    ///< 24 significant bits
};

/// "bf16", "fp16", "float32".
std::string_view to_string(FloatFormat format);
/// \throws ConfigError  for another name.
FloatFormat parse_float_format(std::string_view name);

/// Largest relative error of rounding to the format within its normal range: 2^-p for p significant bits.
double unit_roundoff(FloatFormat format);

/// The nearest number of the format, ties to even; infinite beyond its range.
double round_to_format(double value, FloatFormat format);

/// Different numbers among the positions 0 .. n_positions - 1 once they are in the format.
std::int64_t distinct_positions(FloatFormat format, std::int64_t n_positions);

/// What casting a frequency list to a format costs.
struct FrequencyCast {
  double worst_relative_error = 0;
  std::int64_t n_zero = 0;       ///< channels that become 0 though they turn
  std::int64_t n_subnormal = 0;  ///< channels that lose significant bits below the normal range
};
FrequencyCast cast_frequencies(const std::vector<double>& inv_freq, FloatFormat format);

/// Largest error of a cosine at `position` if the frequencies were rounded to the format first.
double cosine_error_of_cast(const std::vector<double>& inv_freq, FloatFormat format, std::int64_t position);

/// Largest error of a cosine at `position` where frequency and angle are float32, as in most implementations.
double cosine_error_of_float32_angles(const std::vector<double>& inv_freq, std::int64_t position);

/// ggml's angles: position, multiplied by the float32 base^(-2/r) again and again in float32. [rotary_dim / 2]
std::vector<float> iterated_float32_angles(std::int64_t rotary_dim, double base, std::int64_t position);

}  // namespace fathom::rope
