#pragma once
// A tensor of an open file, and the reading of rows from it.

#include <cstdint>
#include <vector>

#include "harness/checkpoint/dequantize.h"
#include "harness/checkpoint/name_map.h"

namespace fathom::checkpoint {

/// What both containers have to say about a tensor. The bytes belong to the file.
struct StoredTensor {
  std::vector<std::int64_t> shape;
  const StorageType* type = nullptr;
  const std::uint8_t* data = nullptr;
  TensorRule rule;  ///< how the tensor that is asked for stands in the stored one; its shape is the one above
  std::vector<StoredTensor> parts = {};  ///< as TensorRule::parts, each with its rule
};

/// Rows [row_begin, row_end), which exist, as float32.
/// \param out  takes (row_end - row_begin) * product of the other dimensions values.
void read_rows(const StoredTensor& tensor, std::int64_t row_begin, std::int64_t row_end, float* out);

/// True if two tensors as they are stored have the same type, shape and bytes; reads both to the end where they do.
bool have_same_values(const StoredTensor& a, const StoredTensor& b);

/// Gives the pages of the stored tensor back to the system; reading brings them back.
void release_pages(const StoredTensor& tensor);

}  // namespace fathom::checkpoint
