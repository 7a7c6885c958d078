#include "harness/checkpoint/dequantize.h"

#include <algorithm>
#include <cstring>

#include "harness/checkpoint/dequantize_blocks.h"

namespace fathom::checkpoint {
namespace {

struct NumberedStorageType {
  std::uint32_t id;  ///< ggml's number
  StorageType type;
};

void copy_f32(const std::uint8_t* blocks, std::int64_t n_blocks, float* out) {
  std::memcpy(out, blocks, static_cast<std::size_t>(n_blocks) * sizeof(float));
}

// Types without a function are listed so that a message can name them.
constexpr NumberedStorageType kStorageTypes[] = {
    {0, {"F32", 1, 4, &copy_f32}},
    {1, {"F16", 1, 2, &dequantize_f16}},
    {2, {"Q4_0", 32, 18, &dequantize_q4_0}},
    {3, {"Q4_1", 32, 20, &dequantize_q4_1}},
    {6, {"Q5_0", 32, 22, &dequantize_q5_0}},
    {7, {"Q5_1", 32, 24, &dequantize_q5_1}},
    {8, {"Q8_0", 32, 34, &dequantize_q8_0}},
    {9, {"Q8_1", 32, 36, nullptr}},
    {10, {"Q2_K", 256, 84, &dequantize_q2_k}},
    {11, {"Q3_K", 256, 110, &dequantize_q3_k}},
    {12, {"Q4_K", 256, 144, &dequantize_q4_k}},
    {13, {"Q5_K", 256, 176, &dequantize_q5_k}},
    {14, {"Q6_K", 256, 210, &dequantize_q6_k}},
    {15, {"Q8_K", 256, 292, nullptr}},
    {16, {"IQ2_XXS", 256, 66, nullptr}},
    {17, {"IQ2_XS", 256, 74, nullptr}},
    {18, {"IQ3_XXS", 256, 98, nullptr}},
    {19, {"IQ1_S", 256, 50, nullptr}},
    {20, {"IQ4_NL", 32, 18, nullptr}},
    {21, {"IQ3_S", 256, 110, nullptr}},
    {22, {"IQ2_S", 256, 82, nullptr}},
    {23, {"IQ4_XS", 256, 136, nullptr}},
    {24, {"I8", 1, 1, nullptr}},
    {25, {"I16", 1, 2, nullptr}},
    {26, {"I32", 1, 4, nullptr}},
    {27, {"I64", 1, 8, nullptr}},
    {28, {"F64", 1, 8, nullptr}},
    {29, {"IQ1_M", 256, 56, nullptr}},
    {30, {"BF16", 1, 2, &dequantize_bf16}},
    {34, {"TQ1_0", 256, 54, nullptr}},
    {35, {"TQ2_0", 256, 66, nullptr}},
    {39, {"MXFP4", 32, 17, &dequantize_mxfp4}},
};

}  // namespace

const StorageType* find_ggml_type(std::uint32_t id) {
  for (const NumberedStorageType& entry : kStorageTypes) {
    if (entry.id == id) return &entry.type;
  }
  return nullptr;
}

const StorageType* find_storage_type(std::string_view name) {
  for (const NumberedStorageType& entry : kStorageTypes) {
    if (entry.type.name == name) return &entry.type;
  }
  return nullptr;
}

std::vector<std::string> supported_storage_types() {
  std::vector<std::string> names;
  for (const NumberedStorageType& entry : kStorageTypes) {
    if (entry.type.dequantize != nullptr) names.emplace_back(entry.type.name);
  }
  return names;
}

void dequantize_range(const StorageType& type, const std::uint8_t* data, std::int64_t begin, std::int64_t end,
                      float* out) {
  const std::int64_t block = type.block_values;
  const auto expand_part = [&](std::int64_t from, std::int64_t to) {  // inside one block
    std::vector<float> values(static_cast<std::size_t>(block));
    type.dequantize(data + from / block * type.block_bytes, 1, values.data());
    std::copy(values.begin() + from % block, values.begin() + from % block + (to - from), out);
    out += to - from;
  };
  if (begin % block != 0) {
    const std::int64_t stop = std::min(end, (begin / block + 1) * block);
    expand_part(begin, stop);
    begin = stop;
  }
  const std::int64_t whole = (end - begin) / block;
  if (whole > 0) {
    type.dequantize(data + begin / block * type.block_bytes, whole, out);
    out += whole * block;
    begin += whole * block;
  }
  if (begin < end) expand_part(begin, end);
}

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t fraction = bits & 0x3ffu;
  std::uint32_t out = 0;
  if (exponent == 0x1f) {
    out = sign | 0x7f800000u | (fraction << 13);
  } else if (exponent != 0) {
    out = sign | ((exponent + 112) << 23) | (fraction << 13);
  } else {
    // Zero or subnormal: fraction * 2^-24 is exact in float32.
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  float value = 0;
  std::memcpy(&value, &out, sizeof(value));
  return value;
}

float bfloat16_to_float(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float value = 0;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

}  // namespace fathom::checkpoint
