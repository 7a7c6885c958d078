#include "harness/rope/cope.h"

#include <algorithm>
#include <cmath>

namespace fathom::rope {

std::vector<double> cope_positions(const std::vector<double>& logits, std::int64_t n_positions) {
  std::vector<double> positions(logits.size());
  double sum = 0;
  for (std::size_t j = logits.size(); j-- > 0;) {
    sum += 1 / (1 + std::exp(-logits[j]));
    positions[j] = std::min(sum, static_cast<double>(n_positions - 1));
  }
  return positions;
}

double cope_bias(double position, const std::vector<double>& position_logits) {
  const double below = std::floor(position);
  const double weight = position - below;
  const double low = position_logits[static_cast<std::size_t>(below)];
  const double high = position_logits[static_cast<std::size_t>(std::ceil(position))];
  return low * (1 - weight) + high * weight;
}

}  // namespace fathom::rope
