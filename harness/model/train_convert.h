#pragma once
// Conversions to bf16 for the matrix products of the training path. Torch-free; parallel over OpenMP threads.

#include <cstdint>

namespace fathom::model {

/// out[r, c] = bf16(in[r, c]), nearest even; rows from `rows` to `padded_rows` become 0. Both [.., columns],
/// contiguous.
void narrow_rows(const float* in, std::int64_t rows, std::int64_t columns, std::uint16_t* out,
                 std::int64_t padded_rows);

/// out[c, r] = bf16(in[r, c]) with row length `padded_rows`, columns beyond `rows` 0. \param column_sums  [columns]
/// sums over rows, or null.
void narrow_transposed(const float* in, std::int64_t rows, std::int64_t columns, std::uint16_t* out,
                       std::int64_t padded_rows, float* column_sums);

/// rows[r, c] += bias[c]
void add_bias(const float* bias, std::int64_t rows, std::int64_t columns, float* values);

}  // namespace fathom::model
