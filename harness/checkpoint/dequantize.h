#pragma once
// Storage types of tensors, and their expansion to float32.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::checkpoint {

/// Values are stored in blocks of `block_values` numbers that take `block_bytes` bytes. Little-endian.
struct StorageType {
  std::string_view name;  ///< as ggml writes it: "F32", "Q4_1", …
  std::int64_t block_values;
  std::int64_t block_bytes;
  /// Expands n_blocks blocks; `out` takes n_blocks * block_values floats. Null where the type is known but not
  /// supported.
  void (*dequantize)(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);
};

/// By ggml's number in a GGUF file; null if there is no such type.
const StorageType* find_ggml_type(std::uint32_t id);
/// By name; null if there is no such type.
const StorageType* find_storage_type(std::string_view name);
/// Names of the types that can be expanded, for messages.
std::vector<std::string> supported_storage_types();

/// Tensor elements [begin, end) of a row-major tensor as float32; `begin` need not lie on a block.
void dequantize_range(const StorageType& type, const std::uint8_t* data, std::int64_t begin, std::int64_t end,
                      float* out);

/// IEEE 754 binary16 to binary32, exact, subnormals and infinities included.
float half_to_float(std::uint16_t bits);
float bfloat16_to_float(std::uint16_t bits);

}  // namespace fathom::checkpoint
