#include "harness/rope/inkling_bias.h"

#include <algorithm>
#include <cmath>

namespace fathom::rope {

double inkling_bias(const std::vector<double>& states, const std::vector<double>& projection, std::int64_t extent,
                    std::int64_t distance) {
  if (distance < 0 || distance >= extent) return 0;
  double bias = 0;
  for (std::size_t c = 0; c < states.size(); ++c) {
    bias += states[c] * projection[c * static_cast<std::size_t>(extent) + static_cast<std::size_t>(distance)];
  }
  return bias;
}

double inkling_log_scaling(std::int64_t query_position, std::int64_t n_floor, double alpha) {
  const double reach = static_cast<double>(query_position + 1) / static_cast<double>(n_floor);
  return 1 + alpha * std::log(std::max(reach, 1.0));
}

}  // namespace fathom::rope
