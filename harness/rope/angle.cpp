#include "harness/rope/angle.h"

#include <cmath>

namespace fathom::rope {
namespace {

/// The second rounding starts from the float32 number, as a cast of a finished float32 table does.
float narrowed_entry(float value, FloatFormat table_dtype) {
  return static_cast<float>(round_to_format(static_cast<double>(value), table_dtype));
}

}  // namespace

CosSin table_entry(double position, double inv_freq, double attention_factor, FloatFormat table_dtype) {
  const double angle = std::fmod(position * inv_freq, kTwoPi);
  const CosSin single = {static_cast<float>(std::cos(angle) * attention_factor),
                         static_cast<float>(std::sin(angle) * attention_factor)};
  if (table_dtype == FloatFormat::kFloat32) return single;
  return {narrowed_entry(single.cos, table_dtype), narrowed_entry(single.sin, table_dtype)};
}

}  // namespace fathom::rope
