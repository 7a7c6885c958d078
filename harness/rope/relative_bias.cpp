#include "harness/rope/relative_bias.h"

#include <algorithm>
#include <cmath>

namespace fathom::rope {

double kerple_log_bias(double p, double a, double distance) {
  return -p * std::log1p(a * distance);
}

double kerple_power_bias(double a, double p, double distance) {
  return -a * std::pow(distance, p);
}

double fire_argument(double distance, double query_position, double c, double threshold) {
  const double farthest = std::max(query_position, std::abs(threshold));
  return std::log1p(std::abs(c * distance)) / (std::log1p(std::abs(c * farthest)) + 1e-6);
}

}  // namespace fathom::rope
