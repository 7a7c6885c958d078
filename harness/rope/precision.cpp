#include "harness/rope/precision.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/core/error.h"

namespace fathom::rope {
namespace {

struct FormatLimits {
  int significant_bits;
  int least_exponent;  ///< of normal numbers
  double largest;
};

FormatLimits limits_of(FloatFormat format) {
  switch (format) {
    case FloatFormat::kBfloat16:
      return {8, -126, std::ldexp(255, 120)};
    case FloatFormat::kFloat16:
      return {11, -14, 65504};
    case FloatFormat::kFloat32:
      return {24, -126, std::numeric_limits<float>::max()};
  }
  return {};
}

/// Numbers of the format in 1 .. value, where value is one of them and an integer.
std::int64_t rank_among_integers(double value, const FormatLimits& limits) {
  const std::int64_t exact = INT64_C(1) << limits.significant_bits;
  if (value <= static_cast<double>(exact)) return static_cast<std::int64_t>(value);
  const int exponent = std::ilogb(value);
  const double spacing = std::ldexp(1.0, exponent + 1 - limits.significant_bits);
  return exact + (exponent - limits.significant_bits) * (exact / 2) +
         static_cast<std::int64_t>((value - std::ldexp(1.0, exponent)) / spacing);
}

}  // namespace

std::string_view to_string(FloatFormat format) {
  switch (format) {
    case FloatFormat::kBfloat16:
      return "bf16";
    case FloatFormat::kFloat16:
      return "fp16";
    case FloatFormat::kFloat32:
      return "float32";
  }
  return "";
}

FloatFormat parse_float_format(std::string_view name) {
  for (const FloatFormat format : {FloatFormat::kFloat32, FloatFormat::kBfloat16, FloatFormat::kFloat16}) {
    if (to_string(format) == name) return format;
  }
  throw ConfigError(fmt::format("number format '{}' must be float32, bf16 or fp16", name));
}

double unit_roundoff(FloatFormat format) {
  return std::ldexp(1.0, -limits_of(format).significant_bits);
}

double round_to_format(double value, FloatFormat format) {
  if (value == 0 || !std::isfinite(value)) return value;
  const FormatLimits limits = limits_of(format);
  const int exponent = std::max(std::ilogb(value), limits.least_exponent);
  const double spacing = std::ldexp(1.0, exponent + 1 - limits.significant_bits);
  const double rounded = std::nearbyint(value / spacing) * spacing;
  if (std::abs(rounded) <= limits.largest) return rounded;
  return std::copysign(std::numeric_limits<double>::infinity(), value);
}

std::int64_t distinct_positions(FloatFormat format, std::int64_t n_positions) {
  if (n_positions < 1) return 0;
  const FormatLimits limits = limits_of(format);
  // Rounding keeps the order and every integer of the format is its own image: all of them up to the last one occur.
  const double last = round_to_format(static_cast<double>(n_positions - 1), format);
  if (std::isfinite(last)) return rank_among_integers(last, limits) + 1;
  return rank_among_integers(limits.largest, limits) + 2;  // 0 and infinity
}

FrequencyCast cast_frequencies(const std::vector<double>& inv_freq, FloatFormat format) {
  const double least_normal = std::ldexp(1.0, limits_of(format).least_exponent);
  FrequencyCast cast;
  for (const double theta : inv_freq) {
    if (theta == 0) continue;
    const double rounded = round_to_format(theta, format);
    cast.worst_relative_error = std::max(cast.worst_relative_error, std::abs(rounded - theta) / theta);
    cast.n_zero += rounded == 0 ? 1 : 0;
    cast.n_subnormal += rounded != 0 && rounded < least_normal ? 1 : 0;
  }
  return cast;
}

double cosine_error_of_cast(const std::vector<double>& inv_freq, FloatFormat format, std::int64_t position) {
  const auto m = static_cast<double>(position);
  double worst = 0;
  for (const double theta : inv_freq) {
    worst = std::max(worst, std::abs(std::cos(m * round_to_format(theta, format)) - std::cos(m * theta)));
  }
  return worst;
}

double cosine_error_of_float32_angles(const std::vector<double>& inv_freq, std::int64_t position) {
  double worst = 0;
  for (const double theta : inv_freq) {
    const float angle = static_cast<float>(position) * static_cast<float>(theta);
    const double exact = std::cos(static_cast<double>(position) * theta);
    worst = std::max(worst, std::abs(static_cast<double>(std::cos(angle)) - exact));
  }
  return worst;
}

std::vector<float> iterated_float32_angles(std::int64_t rotary_dim, double base, std::int64_t position) {
  const float step = std::pow(static_cast<float>(base), -2.0F / static_cast<float>(rotary_dim));
  auto angle = static_cast<float>(position);
  std::vector<float> angles;
  for (std::int64_t i = 0; i < rotary_dim / 2; ++i) {
    angles.push_back(angle);
    angle *= step;
  }
  return angles;
}

}  // namespace fathom::rope
