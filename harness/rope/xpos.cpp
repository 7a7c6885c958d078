#include "harness/rope/xpos.h"

#include <cmath>

namespace fathom::rope {

std::vector<double> xpos_zeta(std::int64_t d_head, double gamma) {
  std::vector<double> zeta;
  for (std::int64_t i = 0; i < d_head / 2; ++i) {
    zeta.push_back((2.0 * static_cast<double>(i) / static_cast<double>(d_head) + gamma) / (1 + gamma));
  }
  return zeta;
}

double xpos_scale(double zeta, double position, double centre, double scale_base) {
  return std::pow(zeta, (position - centre) / scale_base);
}

std::int64_t xpos_centre(std::int64_t length) {
  return (length + 1) / 2;
}

}  // namespace fathom::rope
