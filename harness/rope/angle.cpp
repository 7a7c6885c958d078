#include "harness/rope/angle.h"

#include <cmath>

namespace fathom::rope {

CosSin table_entry(double position, double inv_freq, double attention_factor) {
  const double angle = std::fmod(position * inv_freq, kTwoPi);
  return {static_cast<float>(std::cos(angle) * attention_factor),
          static_cast<float>(std::sin(angle) * attention_factor)};
}

}  // namespace fathom::rope
