#include "harness/rope/alibi_slopes.h"

#include <fmt/format.h>

#include <cmath>

#include "harness/core/error.h"

namespace fathom::rope {

std::vector<double> alibi_slopes(std::int64_t n_heads, double max_bias) {
  if (n_heads < 1) throw ConfigError(fmt::format("alibi: n_heads = {} must be at least 1", n_heads));
  if (!(max_bias > 0) || !std::isfinite(max_bias)) {
    throw ConfigError(fmt::format("alibi: max_bias = {} must be a finite number above 0", max_bias));
  }
  std::int64_t c = 1;
  while (c <= n_heads / 2) c *= 2;
  const auto c_real = static_cast<double>(c);
  std::vector<double> slopes;
  slopes.reserve(static_cast<std::size_t>(n_heads));
  for (std::int64_t h = 1; h <= c; ++h) slopes.push_back(std::exp2(-max_bias * static_cast<double>(h) / c_real));
  for (std::int64_t h = 1; c + h <= n_heads; ++h) {
    slopes.push_back(std::exp2(-max_bias * static_cast<double>(2 * h - 1) / (2 * c_real)));
  }
  return slopes;
}

}  // namespace fathom::rope
