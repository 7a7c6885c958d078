#include "harness/checkpoint/stored_tensor.h"

#include <algorithm>
#include <cstddef>

#include "harness/checkpoint/mapped_file.h"

namespace fathom::checkpoint {
namespace {

/// Rows of a tensor that stands in one stored tensor.
void read_stored(const StoredTensor& tensor, std::int64_t row_begin, std::int64_t row_end, float* out) {
  read_view(
      tensor.rule, row_begin, row_end,
      [&](std::int64_t begin, std::int64_t end, float* values) {
        dequantize_range(*tensor.type, tensor.data, begin, end, values);
      },
      out);
}

/// Rows that come from several stored tensors, so many of each in turn.
void read_in_turns(const StoredTensor& tensor, std::int64_t row_begin, std::int64_t row_end, float* out) {
  const std::int64_t width = tensor.rule.shape.back();
  std::int64_t turn = 0;  // rows of one round
  for (const StoredTensor& part : tensor.parts) turn += part.rule.view.group_rows;
  for (std::int64_t row = row_begin; row < row_end;) {
    std::int64_t in_turn = row % turn;
    for (const StoredTensor& part : tensor.parts) {
      const std::int64_t rows = part.rule.view.group_rows;
      if (in_turn >= rows) {
        in_turn -= rows;
        continue;
      }
      const std::int64_t n = std::min(rows - in_turn, row_end - row);
      const std::int64_t first = row / turn * rows + in_turn;
      read_stored(part, first, first + n, out + (row - row_begin) * width);
      row += n;
      break;
    }
  }
}

}  // namespace

void read_rows(const StoredTensor& tensor, std::int64_t row_begin, std::int64_t row_end, float* out) {
  if (tensor.parts.empty()) {
    read_stored(tensor, row_begin, row_end, out);
  } else {
    read_in_turns(tensor, row_begin, row_end, out);
  }
}

void release_pages(const StoredTensor& tensor) {
  if (!tensor.parts.empty()) {
    for (const StoredTensor& part : tensor.parts) release_pages(part);
    return;
  }
  std::int64_t n_values = 1;
  for (const std::int64_t size : tensor.rule.stored_shape) n_values *= size;
  release_mapped_pages({reinterpret_cast<const char*>(tensor.data),
                        static_cast<std::size_t>(n_values / tensor.type->block_values * tensor.type->block_bytes)});
}

}  // namespace fathom::checkpoint
