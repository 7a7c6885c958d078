#pragma once
// Random matrices whose values are exact in bf16, so that both element types hold the same numbers.

#include <cmath>
#include <cstdint>
#include <vector>

#include "harness/core/random.h"
#include "harness/kernels/element_type.h"

namespace fathom::test {

struct Matrix {
  kernels::ElementType type = kernels::ElementType::kFloat32;
  std::vector<float> values;
  std::vector<kernels::BFloat16Bits> halves;
  const void* data() const {
    return type == kernels::ElementType::kFloat32 ? static_cast<const void*>(values.data()) : halves.data();
  }
};

inline Matrix random_matrix(kernels::ElementType type, std::int64_t n, std::uint64_t seed) {
  Matrix m;
  m.type = type;
  std::uint64_t state = seed * 0x9e3779b97f4a7c15ULL + 1;
  for (std::int64_t i = 0; i < n; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const double uniform = static_cast<double>(state >> 11) * 0x1.0p-53;
    const auto half = kernels::to_bfloat16(static_cast<float>(2 * uniform - 1));
    m.halves.push_back(half);
    m.values.push_back(kernels::from_bfloat16(half));
  }
  return m;
}

inline double largest_difference(const std::vector<double>& expected, const std::vector<float>& got) {
  double largest = expected.size() == got.size() ? 0.0 : 1e30;
  for (std::size_t i = 0; i < expected.size() && i < got.size(); ++i) {
    const double difference = std::fabs(expected[i] - static_cast<double>(got[i]));
    if (!(difference <= largest)) largest = std::isnan(difference) ? 1e30 : difference;
  }
  return largest;
}

}  // namespace fathom::test
