#include "harness/checkpoint/dequantize_blocks.h"

#include <cstring>

#include "harness/checkpoint/dequantize.h"

namespace fathom::checkpoint {
namespace {

float block_half(const std::uint8_t* bytes) {
  return half_to_float(static_cast<std::uint16_t>(bytes[0] | (bytes[1] << 8)));
}

/// Fifth bits of 32 values, bit i for value i.
std::uint32_t block_high_bits(const std::uint8_t* bytes) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, bytes, sizeof(bits));
  return bits;
}

/// 6-bit scale and minimum of sub-block j of 8, packed into 12 bytes: bytes 0-3 hold scales 0-3, bytes 4-7 minima 0-3
/// (low 6 bits each); bytes 8-11 hold the low nibbles of scales 4-7 and minima 4-7, whose upper two bits stand in the
/// top of bytes 0-3 and 4-7.
struct ScaleAndMinimum {
  int scale;
  int minimum;
};

ScaleAndMinimum unpack_scale(const std::uint8_t* packed, int j) {
  if (j < 4) return {packed[j] & 63, packed[j + 4] & 63};
  return {(packed[j + 4] & 15) | ((packed[j - 4] >> 6) << 4), (packed[j + 4] >> 4) | ((packed[j] >> 6) << 4)};
}

}  // namespace

// 32 values: half d, 16 bytes of nibbles; the low nibble of byte i is value i, the high one value i + 16. d (q - 8)
void dequantize_q4_0(const std::uint8_t* blocks, std::int64_t n_blocks, float* out) {
  for (std::int64_t b = 0; b < n_blocks; ++b, blocks += 18, out += 32) {
    const float d = block_half(blocks);
    for (int i = 0; i < 16; ++i) {
      out[i] = d * static_cast<float>((blocks[2 + i] & 15) - 8);
      out[i + 16] = d * static_cast<float>((blocks[2 + i] >> 4) - 8);
    }
  }
}

// As Q4_0 with a half minimum m after d. d q + m
void dequantize_q4_1(const std::uint8_t* blocks, std::int64_t n_blocks, float* out) {
  for (std::int64_t b = 0; b < n_blocks; ++b, blocks += 20, out += 32) {
    const float d = block_half(blocks);
    const float m = block_half(blocks + 2);
    for (int i = 0; i < 16; ++i) {
      out[i] = d * static_cast<float>(blocks[4 + i] & 15) + m;
      out[i + 16] = d * static_cast<float>(blocks[4 + i] >> 4) + m;
    }
  }
}

// Half d, 4 bytes of fifth bits, 16 bytes of nibbles. d (q - 16)
void dequantize_q5_0(const std::uint8_t* blocks, std::int64_t n_blocks, float* out) {
  for (std::int64_t b = 0; b < n_blocks; ++b, blocks += 22, out += 32) {
    const float d = block_half(blocks);
    const std::uint32_t high = block_high_bits(blocks + 2);
    for (int i = 0; i < 16; ++i) {
      const int low_value = (blocks[6 + i] & 15) | static_cast<int>(((high >> i) & 1) << 4);
      const int high_value = (blocks[6 + i] >> 4) | static_cast<int>(((high >> (i + 16)) & 1) << 4);
      out[i] = d * static_cast<float>(low_value - 16);
      out[i + 16] = d * static_cast<float>(high_value - 16);
    }
  }
}

// Half d, half m, 4 bytes of fifth bits, 16 bytes of nibbles. d q + m
void dequantize_q5_1(const std::uint8_t* blocks, std::int64_t n_blocks, float* out) {
  for (std::int64_t b = 0; b < n_blocks; ++b, blocks += 24, out += 32) {
    const float d = block_half(blocks);
    const float m = block_half(blocks + 2);
    const std::uint32_t high = block_high_bits(blocks + 4);
    for (int i = 0; i < 16; ++i) {
      const int low_value = (blocks[8 + i] & 15) | static_cast<int>(((high >> i) & 1) << 4);
      const int high_value = (blocks[8 + i] >> 4) | static_cast<int>(((high >> (i + 16)) & 1) << 4);
      out[i] = d * static_cast<float>(low_value) + m;
      out[i + 16] = d * static_cast<float>(high_value) + m;
    }
  }
}

// Half d, 32 signed bytes. d q
void dequantize_q8_0(const std::uint8_t* blocks, std::int64_t n_blocks, float* out) {
  for (std::int64_t b = 0; b < n_blocks; ++b, blocks += 34, out += 32) {
    const float d = block_half(blocks);
    for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(static_cast<std::int8_t>(blocks[2 + i]));
  }
}

// 256 values in 16 sub-blocks: 16 bytes (low nibble scale, high nibble minimum), 64 bytes of 2-bit values, half d, half
// dmin. Byte l of each 32-byte half holds values l, l + 32, l + 64, l + 96 of its 128. d scale q - dmin minimum
void dequantize_q2_k(const std::uint8_t* blocks, std::int64_t n_blocks, float* out) {
  for (std::int64_t b = 0; b < n_blocks; ++b, blocks += 84) {
    const float d = block_half(blocks + 80);
    const float dmin = block_half(blocks + 82);
    for (int i = 0; i < 256; ++i) {
      const int scales = blocks[i / 16];
      const int q = (blocks[16 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3;
      *out++ = d * static_cast<float>(scales & 15) * static_cast<float>(q) - dmin * static_cast<float>(scales >> 4);
    }
  }
}

// 256 values in 8 sub-blocks of 32: half d, half dmin, 12 bytes of packed scales, 128 bytes of nibbles. Each 32 bytes
// hold two sub-blocks: low nibbles the first, high nibbles the second. d scale q - dmin minimum
void dequantize_q4_k(const std::uint8_t* blocks, std::int64_t n_blocks, float* out) {
  for (std::int64_t b = 0; b < n_blocks; ++b, blocks += 144) {
    const float d = block_half(blocks);
    const float dmin = block_half(blocks + 2);
    for (int j = 0; j < 8; ++j) {
      const ScaleAndMinimum packed = unpack_scale(blocks + 4, j);
      const float scale = d * static_cast<float>(packed.scale);
      const float minimum = dmin * static_cast<float>(packed.minimum);
      const std::uint8_t* nibbles = blocks + 16 + j / 2 * 32;
      for (int i = 0; i < 32; ++i) *out++ = scale * static_cast<float>((nibbles[i] >> (j % 2 * 4)) & 15) - minimum;
    }
  }
}

// As Q4_K with 32 bytes of fifth bits after the scales: bit j of byte i belongs to value i of sub-block j.
void dequantize_q5_k(const std::uint8_t* blocks, std::int64_t n_blocks, float* out) {
  for (std::int64_t b = 0; b < n_blocks; ++b, blocks += 176) {
    const float d = block_half(blocks);
    const float dmin = block_half(blocks + 2);
    for (int j = 0; j < 8; ++j) {
      const ScaleAndMinimum packed = unpack_scale(blocks + 4, j);
      const float scale = d * static_cast<float>(packed.scale);
      const float minimum = dmin * static_cast<float>(packed.minimum);
      const std::uint8_t* high = blocks + 16;
      const std::uint8_t* nibbles = blocks + 48 + j / 2 * 32;
      for (int i = 0; i < 32; ++i) {
        const int q = ((nibbles[i] >> (j % 2 * 4)) & 15) | (((high[i] >> j) & 1) << 4);
        *out++ = scale * static_cast<float>(q) - minimum;
      }
    }
  }
}

// 256 values in 16 sub-blocks: 128 bytes of low nibbles, 64 bytes of 2-bit tops, 16 signed scales, half d. In each half
// of 128 values, quarter k (32 values) takes nibble k / 2 of bytes 32 (k % 2) + i and bits 2k of top byte i. d scale (q
// - 32)
void dequantize_q6_k(const std::uint8_t* blocks, std::int64_t n_blocks, float* out) {
  for (std::int64_t b = 0; b < n_blocks; ++b, blocks += 210) {
    const float d = block_half(blocks + 208);
    for (int i = 0; i < 256; ++i) {
      const int half = i / 128;
      const int quarter = i % 128 / 32;
      const int lane = i % 32;
      const int low = (blocks[half * 64 + quarter % 2 * 32 + lane] >> (quarter / 2 * 4)) & 15;
      const int top = (blocks[128 + half * 32 + lane] >> (quarter * 2)) & 3;
      const auto scale = static_cast<float>(static_cast<std::int8_t>(blocks[192 + i / 16]));
      *out++ = d * scale * static_cast<float>((low | (top << 4)) - 32);
    }
  }
}

}  // namespace fathom::checkpoint
