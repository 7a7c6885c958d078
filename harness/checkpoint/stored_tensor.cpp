#include "harness/checkpoint/stored_tensor.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

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

std::string_view stored_bytes(const StorageType& type, const std::vector<std::int64_t>& shape,
                              const std::uint8_t* data) {
  std::int64_t n_values = 1;
  for (const std::int64_t size : shape) n_values *= size;
  return {reinterpret_cast<const char*>(data),
          static_cast<std::size_t>(n_values / type.block_values * type.block_bytes)};
}

}  // namespace

void read_rows(const StoredTensor& tensor, std::int64_t row_begin, std::int64_t row_end, float* out) {
  if (tensor.parts.empty()) {
    read_stored(tensor, row_begin, row_end, out);
  } else {
    read_in_turns(tensor, row_begin, row_end, out);
  }
}

bool have_same_values(const StoredTensor& a, const StoredTensor& b) {
  constexpr std::size_t kPieceBytes = std::size_t{1} << 24;
  if (a.type != b.type || a.shape != b.shape) return false;
  const std::string_view left = stored_bytes(*a.type, a.shape, a.data), right = stored_bytes(*b.type, b.shape, b.data);
  // In pieces, so that two large tensors are never in memory as a whole.
  for (std::size_t at = 0; at < left.size(); at += kPieceBytes) {
    const std::string_view one = left.substr(at, kPieceBytes), other = right.substr(at, kPieceBytes);
    if (one != other) return false;
    release_mapped_pages(one);
    release_mapped_pages(other);
  }
  return true;
}

void release_pages(const StoredTensor& tensor) {
  if (!tensor.parts.empty()) {
    for (const StoredTensor& part : tensor.parts) release_pages(part);
    return;
  }
  release_mapped_pages(stored_bytes(*tensor.type, tensor.rule.stored_shape, tensor.data));
}

}  // namespace fathom::checkpoint
