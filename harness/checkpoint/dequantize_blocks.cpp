#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "harness/checkpoint/dequantize_blocks.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h has to come first.
#include <hwy/highway.h>

#include <cmath>
#include <cstring>

#include "harness/checkpoint/dequantize.h"
#include "harness/checkpoint/dequantize_blocks.h"

// Every format is unpacked into signed bytes, sub-blocks of which become scale * q - minimum. A half scale has 11 bits,
// packed scales 8 and values at most 8, and no format has all three, so the products are exact in float32 and their
// order, or a fused multiply, cannot change a bit.
HWY_BEFORE_NAMESPACE();
namespace fathom::checkpoint::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Sub-blocks are 16 or 32 values, so vectors of more than 16 floats would not divide them.
using FloatTag = hn::CappedTag<float, 16>;
using ByteTag = hn::CappedTag<std::uint8_t, 16>;
constexpr int kByteLanes = static_cast<int>(hn::MaxLanes(ByteTag()));

inline float block_half(const std::uint8_t* bytes) {
  return half_to_float(static_cast<std::uint16_t>(bytes[0] | (bytes[1] << 8)));
}

/// out[i] = scale * q[i] - minimum; n is a multiple of 16.
HWY_INLINE void expand(const std::int8_t* q, int n, float scale, float minimum, float* out) {
  const FloatTag d;
  const hn::Rebind<std::int32_t, FloatTag> d_whole;
  const hn::Rebind<std::int8_t, FloatTag> d_byte;
  const auto factor = hn::Set(d, scale);
  const auto shift = hn::Set(d, minimum);
  for (int i = 0; i < n; i += static_cast<int>(hn::Lanes(d))) {
    const auto value = hn::ConvertTo(d, hn::PromoteTo(d_whole, hn::LoadU(d_byte, q + i)));
    hn::StoreU(hn::Sub(hn::Mul(value, factor), shift), d, out + i);
  }
}

template <typename Vector>
HWY_INLINE void store_bytes(Vector value, std::int8_t* out) {
  const hn::RebindToSigned<ByteTag> d;
  hn::StoreU(hn::BitCast(d, value), d, out);
}

/// Bits 2 * kPair and up of every byte, two of them.
template <int kPair, typename Vector>
HWY_INLINE Vector bit_pair(Vector bytes) {
  return hn::And(hn::ShiftRight<2 * kPair>(bytes), hn::Set(ByteTag(), std::uint8_t{3}));
}

/// 16 bytes of nibbles: the low ones to out[0…15], the high ones to out[high_at…]. `bias` is taken from each.
HWY_INLINE void unpack_nibbles(const std::uint8_t* bytes, int bias, std::int8_t* out, int high_at) {
  const ByteTag d;
  const auto shift = hn::Set(d, static_cast<std::uint8_t>(bias));
  for (int i = 0; i < 16; i += kByteLanes) {
    const auto packed = hn::LoadU(d, bytes + i);
    store_bytes(hn::Sub(hn::And(packed, hn::Set(d, std::uint8_t{15})), shift), out + i);
    store_bytes(hn::Sub(hn::ShiftRight<4>(packed), shift), out + high_at + i);
  }
}

/// Adds `value` to the q[0…n-1] whose byte in `bytes` has a bit of `bits`, which is one a value.
HWY_INLINE void add_where(const std::uint8_t* bytes, const std::uint8_t* bits, int n, int value, std::int8_t* q) {
  const ByteTag d;
  const hn::RebindToSigned<ByteTag> d_signed;
  const auto more = hn::Set(d, static_cast<std::uint8_t>(value));
  for (int i = 0; i < n; i += kByteLanes) {
    const auto chosen = hn::TestBit(hn::LoadU(d, bytes + i), hn::LoadU(d, bits + i));
    const auto low = hn::BitCast(d, hn::LoadU(d_signed, q + i));
    store_bytes(hn::Add(low, hn::IfThenElseZero(chosen, more)), q + i);
  }
}

/// The nibbles of Q5_0 and Q5_1 with their fifth bits: bit i of the four bytes for value i.
HWY_INLINE void unpack_fives(const std::uint8_t* high, const std::uint8_t* nibbles, int bias, std::int8_t* out) {
  static const std::uint8_t kBits[32] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128,
                                         1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  std::uint8_t bytes[32];
  for (std::ptrdiff_t i = 0; i < 4; ++i) std::memset(bytes + 8 * i, high[i], 8);
  unpack_nibbles(nibbles, bias, out, 16);
  add_where(bytes, kBits, 32, 16, out);
}

/// Adds `value` to the 256 q whose bit is set: bit j of byte i belongs to q[32 j + i].
HWY_INLINE void add_bit_planes(const std::uint8_t* bytes, int value, std::int8_t* q) {
  std::uint8_t bits[32];
  for (std::ptrdiff_t j = 0; j < 8; ++j) {
    std::memset(bits, 1 << j, sizeof(bits));
    add_where(bytes, bits, 32, value, q + 32 * j);
  }
}

/// 6-bit scale and minimum of sub-block j of 8, packed into 12 bytes: bytes 0-3 hold scales 0-3, bytes 4-7 minima 0-3
/// (low 6 bits each); bytes 8-11 hold the low nibbles of scales 4-7 and minima 4-7, whose upper two bits stand in the
/// top of bytes 0-3 and 4-7.
struct ScaleAndMinimum {
  int scale;
  int minimum;
};

inline ScaleAndMinimum unpack_scale(const std::uint8_t* packed, std::ptrdiff_t j) {
  if (j < 4) return {packed[j] & 63, packed[j + 4] & 63};
  return {(packed[j + 4] & 15) | ((packed[j - 4] >> 6) << 4), (packed[j + 4] >> 4) | ((packed[j] >> 6) << 4)};
}

void f16_impl(const std::uint8_t* blocks, std::int64_t n_blocks, float* out) {
  const FloatTag d;
  const hn::Rebind<hwy::float16_t, FloatTag> d_half;
  const hn::Rebind<std::uint16_t, FloatTag> d_bits;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n_blocks; i += lanes) {
    std::uint16_t bits[16];  // the file promises no alignment
    std::memcpy(bits, blocks + 2 * i, static_cast<std::size_t>(lanes) * 2);
    hn::StoreU(hn::PromoteTo(d, hn::BitCast(d_half, hn::LoadU(d_bits, bits))), d, out + i);
  }
  for (; i < n_blocks; ++i) out[i] = block_half(blocks + 2 * i);
}

void bf16_impl(const std::uint8_t* blocks, std::int64_t n_blocks, float* out) {
  const FloatTag d;
  const hn::Rebind<std::uint32_t, FloatTag> d_wide;
  const hn::Rebind<std::uint16_t, FloatTag> d_bits;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n_blocks; i += lanes) {
    std::uint16_t bits[16];
    std::memcpy(bits, blocks + 2 * i, static_cast<std::size_t>(lanes) * 2);
    const auto wide = hn::ShiftLeft<16>(hn::PromoteTo(d_wide, hn::LoadU(d_bits, bits)));
    hn::StoreU(hn::BitCast(d, wide), d, out + i);
  }
  for (; i < n_blocks; ++i) {
    out[i] = bfloat16_to_float(static_cast<std::uint16_t>(blocks[2 * i] | (blocks[2 * i + 1] << 8)));
  }
}

// 32 values: half d, 16 bytes of nibbles; the low nibble of byte i is value i, the high one value i + 16. d (q - 8)
void q4_0_impl(const std::uint8_t* blocks, std::int64_t n_blocks, float* out) {
  std::int8_t q[32];
  for (std::int64_t b = 0; b < n_blocks; ++b, blocks += 18, out += 32) {
    unpack_nibbles(blocks + 2, 8, q, 16);
    expand(q, 32, block_half(blocks), 0, out);
  }
}

// As Q4_0 with a half minimum m after d. d q + m
void q4_1_impl(const std::uint8_t* blocks, std::int64_t n_blocks, float* out) {
  std::int8_t q[32];
  for (std::int64_t b = 0; b < n_blocks; ++b, blocks += 20, out += 32) {
    unpack_nibbles(blocks + 4, 0, q, 16);
    expand(q, 32, block_half(blocks), -block_half(blocks + 2), out);
  }
}

// Half d, 4 bytes of fifth bits, 16 bytes of nibbles. d (q - 16)
void q5_0_impl(const std::uint8_t* blocks, std::int64_t n_blocks, float* out) {
  std::int8_t q[32];
  for (std::int64_t b = 0; b < n_blocks; ++b, blocks += 22, out += 32) {
    unpack_fives(blocks + 2, blocks + 6, 16, q);
    expand(q, 32, block_half(blocks), 0, out);
  }
}

// Half d, half m, 4 bytes of fifth bits, 16 bytes of nibbles. d q + m
void q5_1_impl(const std::uint8_t* blocks, std::int64_t n_blocks, float* out) {
  std::int8_t q[32];
  for (std::int64_t b = 0; b < n_blocks; ++b, blocks += 24, out += 32) {
    unpack_fives(blocks + 4, blocks + 8, 0, q);
    expand(q, 32, block_half(blocks), -block_half(blocks + 2), out);
  }
}

// Byte e, 16 bytes of nibbles: low ones are values 0-15. 2^(e - 127) f4(q), f4 being a float of a sign, two bits of
// exponent and one of fraction; the table holds twice that.
void mxfp4_impl(const std::uint8_t* blocks, std::int64_t n_blocks, float* out) {
  static const std::int8_t kTwice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  std::int8_t q[32];
  for (std::int64_t b = 0; b < n_blocks; ++b, blocks += 17, out += 32) {
    for (int i = 0; i < 16; ++i) {
      q[i] = kTwice[blocks[1 + i] & 15];
      q[16 + i] = kTwice[blocks[1 + i] >> 4];
    }
    expand(q, 32, std::ldexp(1.0F, static_cast<int>(blocks[0]) - 128), 0, out);
  }
}

// Half d, 32 signed bytes. d q
void q8_0_impl(const std::uint8_t* blocks, std::int64_t n_blocks, float* out) {
  std::int8_t q[32];
  for (std::int64_t b = 0; b < n_blocks; ++b, blocks += 34, out += 32) {
    std::memcpy(q, blocks + 2, sizeof(q));
    expand(q, 32, block_half(blocks), 0, out);
  }
}

/// 32 bytes of bit pairs: pair k of byte i is value 32 k + i of 128. `bias` is taken from each.
HWY_INLINE void unpack_pairs(const std::uint8_t* bytes, int bias, std::int8_t* out) {
  const ByteTag d;
  const auto shift = hn::Set(d, static_cast<std::uint8_t>(bias));
  for (int i = 0; i < 32; i += kByteLanes) {
    const auto packed = hn::LoadU(d, bytes + i);
    store_bytes(hn::Sub(bit_pair<0>(packed), shift), out + i);
    store_bytes(hn::Sub(bit_pair<1>(packed), shift), out + 32 + i);
    store_bytes(hn::Sub(bit_pair<2>(packed), shift), out + 64 + i);
    store_bytes(hn::Sub(bit_pair<3>(packed), shift), out + 96 + i);
  }
}

// 256 values in 16 sub-blocks: 16 bytes (low nibble scale, high nibble minimum), 64 bytes of 2-bit values, half d, half
// dmin. Byte l of each 32-byte half holds values l, l + 32, l + 64, l + 96 of its 128. d scale q - dmin minimum
void q2_k_impl(const std::uint8_t* blocks, std::int64_t n_blocks, float* out) {
  std::int8_t q[256];
  for (std::int64_t b = 0; b < n_blocks; ++b, blocks += 84) {
    const float d = block_half(blocks + 80);
    const float dmin = block_half(blocks + 82);
    unpack_pairs(blocks + 16, 0, q);
    unpack_pairs(blocks + 48, 0, q + 128);
    for (std::ptrdiff_t j = 0; j < 16; ++j, out += 16) {
      expand(q + 16 * j, 16, d * static_cast<float>(blocks[j] & 15), dmin * static_cast<float>(blocks[j] >> 4), out);
    }
  }
}

// 256 values in 16 sub-blocks: 32 bytes of third bits (bit j of byte l for value l of the j-th 32), 64 bytes of 2-bit
// values as in Q2_K, 12 bytes of 6-bit scales, half d. The low nibble of scale j is nibble j / 8 of byte j % 8, its
// upper two bits are pair j / 4 of byte 8 + j % 4. d (scale - 32) (q - 4), where the third bit adds the 4 back.
void q3_k_impl(const std::uint8_t* blocks, std::int64_t n_blocks, float* out) {
  std::int8_t q[256];
  for (std::int64_t b = 0; b < n_blocks; ++b, blocks += 110) {
    const float d = block_half(blocks + 108);
    unpack_pairs(blocks + 32, 4, q);
    unpack_pairs(blocks + 64, 4, q + 128);
    add_bit_planes(blocks, 4, q);
    const std::uint8_t* packed = blocks + 96;
    for (std::ptrdiff_t j = 0; j < 16; ++j, out += 16) {
      const int scale = ((packed[j % 8] >> (j / 8 * 4)) & 15) | (((packed[8 + j % 4] >> (j / 4 * 2)) & 3) << 4);
      expand(q + 16 * j, 16, d * static_cast<float>(scale - 32), 0, out);
    }
  }
}

// 256 values in 8 sub-blocks of 32: half d, half dmin, 12 bytes of packed scales, 128 bytes of nibbles. Each 32 bytes
// hold two sub-blocks: low nibbles the first, high nibbles the second. d scale q - dmin minimum
void q4_k_impl(const std::uint8_t* blocks, std::int64_t n_blocks, float* out) {
  std::int8_t q[256];
  for (std::int64_t b = 0; b < n_blocks; ++b, blocks += 144) {
    const float d = block_half(blocks);
    const float dmin = block_half(blocks + 2);
    for (std::ptrdiff_t i = 0; i < 128; i += 16) unpack_nibbles(blocks + 16 + i, 0, q + i / 32 * 64 + i % 32, 32);
    for (std::ptrdiff_t j = 0; j < 8; ++j, out += 32) {
      const ScaleAndMinimum packed = unpack_scale(blocks + 4, j);
      expand(q + 32 * j, 32, d * static_cast<float>(packed.scale), dmin * static_cast<float>(packed.minimum), out);
    }
  }
}

// As Q4_K with 32 bytes of fifth bits after the scales: bit j of byte i belongs to value i of sub-block j.
void q5_k_impl(const std::uint8_t* blocks, std::int64_t n_blocks, float* out) {
  std::int8_t q[256];
  for (std::int64_t b = 0; b < n_blocks; ++b, blocks += 176) {
    const float d = block_half(blocks);
    const float dmin = block_half(blocks + 2);
    for (std::ptrdiff_t i = 0; i < 128; i += 16) unpack_nibbles(blocks + 48 + i, 0, q + i / 32 * 64 + i % 32, 32);
    add_bit_planes(blocks + 16, 16, q);
    for (std::ptrdiff_t j = 0; j < 8; ++j, out += 32) {
      const ScaleAndMinimum packed = unpack_scale(blocks + 4, j);
      expand(q + 32 * j, 32, d * static_cast<float>(packed.scale), dmin * static_cast<float>(packed.minimum), out);
    }
  }
}

// 256 values in 16 sub-blocks: 128 bytes of low nibbles, 64 bytes of 2-bit tops, 16 signed scales, half d. In each half
// of 128 values, quarter k (32 values) takes nibble k / 2 of bytes 32 (k % 2) + i and bits 2k of top byte i.
// d scale (q - 32)
void q6_k_impl(const std::uint8_t* blocks, std::int64_t n_blocks, float* out) {
  const ByteTag d_byte;
  const hn::RebindToSigned<ByteTag> d_signed;
  std::int8_t q[256];
  std::int8_t tops[256];
  for (std::int64_t b = 0; b < n_blocks; ++b, blocks += 210) {
    const float d = block_half(blocks + 208);
    for (std::ptrdiff_t half = 0; half < 2; ++half) {
      for (std::ptrdiff_t i = 0; i < 64; i += 16) unpack_nibbles(blocks + 64 * half + i, 32, q + 128 * half + i, 64);
      unpack_pairs(blocks + 128 + 32 * half, 0, tops + 128 * half);
    }
    for (int i = 0; i < 256; i += kByteLanes) {
      const auto top = hn::ShiftLeft<4>(hn::BitCast(d_byte, hn::LoadU(d_signed, tops + i)));
      store_bytes(hn::Add(hn::BitCast(d_byte, hn::LoadU(d_signed, q + i)), top), q + i);
    }
    for (std::ptrdiff_t j = 0; j < 16; ++j, out += 16) {
      expand(q + 16 * j, 16, d * static_cast<float>(static_cast<std::int8_t>(blocks[192 + j])), 0, out);
    }
  }
}

}  // namespace fathom::checkpoint::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fathom::checkpoint {

#define FATHOM_DEQUANTIZE(name)                                                           \
  HWY_EXPORT(name##_impl);                                                                \
  void dequantize_##name(const std::uint8_t* blocks, std::int64_t n_blocks, float* out) { \
    HWY_DYNAMIC_DISPATCH(name##_impl)(blocks, n_blocks, out);                             \
  }
FATHOM_DEQUANTIZE(f16)
FATHOM_DEQUANTIZE(bf16)
FATHOM_DEQUANTIZE(q4_0)
FATHOM_DEQUANTIZE(q4_1)
FATHOM_DEQUANTIZE(q5_0)
FATHOM_DEQUANTIZE(q5_1)
FATHOM_DEQUANTIZE(q8_0)
FATHOM_DEQUANTIZE(mxfp4)
FATHOM_DEQUANTIZE(q2_k)
FATHOM_DEQUANTIZE(q3_k)
FATHOM_DEQUANTIZE(q4_k)
FATHOM_DEQUANTIZE(q5_k)
FATHOM_DEQUANTIZE(q6_k)
#undef FATHOM_DEQUANTIZE

}  // namespace fathom::checkpoint
#endif  // HWY_ONCE
