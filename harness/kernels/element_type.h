#pragma once
// Element types of raw matrices, and bf16 by its bits.

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace fathom::kernels {

enum class ElementType { kFloat32, kBFloat16 };

/// A bf16 number is the upper half of a float32's bits; nothing here does arithmetic on it.
using BFloat16Bits = std::uint16_t;

constexpr std::size_t element_size_bytes(ElementType type) {
  return type == ElementType::kFloat32 ? 4 : 2;
}

/// Nearest bf16, ties to even. Not for NaN.
inline BFloat16Bits to_bfloat16(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits += 0x7fffU + ((bits >> 16) & 1U);
  return static_cast<BFloat16Bits>(bits >> 16);
}

inline float from_bfloat16(BFloat16Bits value) {
  const std::uint32_t bits = static_cast<std::uint32_t>(value) << 16;
  float out;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}

}  // namespace fathom::kernels
