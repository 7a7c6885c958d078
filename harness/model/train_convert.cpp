#include "harness/model/train_convert.h"

#include <algorithm>
#include <cstring>

// Written once on GCC vector types and inlined into one wrapper per instruction set; see train_kernels.cpp.
#define FATHOM_ALWAYS_INLINE [[gnu::always_inline]] inline

namespace fathom::model {
namespace {

constexpr std::int64_t kConvertLanes = 16;
constexpr std::int64_t kColumnBlock = 16;

using ConvertFloats = float __attribute__((vector_size(64), aligned(4), may_alias));
using ConvertBits = std::uint32_t __attribute__((vector_size(64), aligned(4), may_alias));
using ConvertHalves = std::uint16_t __attribute__((vector_size(32), aligned(2), may_alias));

FATHOM_ALWAYS_INLINE void narrow_vector(const float* in, std::uint16_t* out) {
  const ConvertBits bits = *reinterpret_cast<const ConvertBits*>(in);
  const ConvertBits rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  *reinterpret_cast<ConvertHalves*>(out) = __builtin_convertvector(rounded, ConvertHalves);
}

FATHOM_ALWAYS_INLINE std::uint16_t narrow_one(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

FATHOM_ALWAYS_INLINE void narrow_span(const float* in, std::int64_t n, std::uint16_t* out) {
  std::int64_t i = 0;
  for (; i + kConvertLanes <= n; i += kConvertLanes) narrow_vector(in + i, out + i);
  for (; i < n; ++i) out[i] = narrow_one(in[i]);
}

struct TransposeCall {
  const float* in;
  std::int64_t rows, columns;
  std::uint16_t* out;
  std::int64_t padded_rows;
  float* column_sums;
};

/// Columns [begin, begin + n), n <= 16: narrows 16 values of a row at once and scatters them, 16 rows at a time so that
/// each line of `out` is filled while it is in the cache.
FATHOM_ALWAYS_INLINE void transpose_columns(const TransposeCall& call, std::int64_t begin, std::int64_t n) {
  ConvertFloats sums{};
  float tail_sums[kColumnBlock] = {};
  std::uint16_t block[kConvertLanes][kColumnBlock];
  for (std::int64_t row = 0; row < call.rows; row += kConvertLanes) {
    const std::int64_t height = std::min(kConvertLanes, call.rows - row);
    for (std::int64_t r = 0; r < height; ++r) {
      const float* source = call.in + (row + r) * call.columns + begin;
      if (n == kColumnBlock) {
        sums += *reinterpret_cast<const ConvertFloats*>(source);
        narrow_vector(source, block[r]);
      } else {
        for (std::int64_t c = 0; c < n; ++c) {
          tail_sums[c] += source[c];
          block[r][c] = narrow_one(source[c]);
        }
      }
    }
    for (std::int64_t c = 0; c < n; ++c) {
      std::uint16_t* target = call.out + (begin + c) * call.padded_rows + row;
      for (std::int64_t r = 0; r < height; ++r) target[r] = block[r][c];
    }
  }
  for (std::int64_t c = 0; c < n; ++c) {
    std::fill(call.out + (begin + c) * call.padded_rows + call.rows, call.out + (begin + c + 1) * call.padded_rows,
              std::uint16_t{0});
    if (call.column_sums != nullptr) call.column_sums[begin + c] = n == kColumnBlock ? sums[c] : tail_sums[c];
  }
}

using NarrowSpan = void (*)(const float*, std::int64_t, std::uint16_t*);
using TransposeColumns = void (*)(const TransposeCall&, std::int64_t, std::int64_t);

void narrow_span_plain(const float* in, std::int64_t n, std::uint16_t* out) {
  narrow_span(in, n, out);
}
void transpose_columns_plain(const TransposeCall& call, std::int64_t begin, std::int64_t n) {
  transpose_columns(call, begin, n);
}

#if defined(__x86_64__)
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]] void narrow_span_avx512(const float* in, std::int64_t n,
                                                                                       std::uint16_t* out) {
  narrow_span(in, n, out);
}
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]] void transpose_columns_avx512(const TransposeCall& call,
                                                                                             std::int64_t begin,
                                                                                             std::int64_t n) {
  transpose_columns(call, begin, n);
}
bool converts_with_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
NarrowSpan pick_narrow() {
  return converts_with_avx512() ? narrow_span_avx512 : narrow_span_plain;
}
TransposeColumns pick_transpose() {
  return converts_with_avx512() ? transpose_columns_avx512 : transpose_columns_plain;
}
#else
NarrowSpan pick_narrow() {
  return narrow_span_plain;
}
TransposeColumns pick_transpose() {
  return transpose_columns_plain;
}
#endif

}  // namespace

void narrow_rows(const float* in, std::int64_t rows, std::int64_t columns, std::uint16_t* out,
                 std::int64_t padded_rows) {
  const NarrowSpan run = pick_narrow();
#pragma omp parallel for schedule(static)
  for (std::int64_t r = 0; r < rows; ++r) run(in + r * columns, columns, out + r * columns);
  std::fill(out + rows * columns, out + padded_rows * columns, std::uint16_t{0});
}

void narrow_transposed(const float* in, std::int64_t rows, std::int64_t columns, std::uint16_t* out,
                       std::int64_t padded_rows, float* column_sums) {
  const TransposeColumns run = pick_transpose();
  const TransposeCall call{in, rows, columns, out, padded_rows, column_sums};
#pragma omp parallel for schedule(static)
  for (std::int64_t begin = 0; begin < columns; begin += kColumnBlock)
    run(call, begin, std::min(kColumnBlock, columns - begin));
}

void add_bias(const float* bias, std::int64_t rows, std::int64_t columns, float* values) {
#pragma omp parallel for schedule(static)
  for (std::int64_t r = 0; r < rows; ++r) {
    float* row = values + r * columns;
    for (std::int64_t c = 0; c < columns; ++c) row[c] += bias[c];
  }
}

}  // namespace fathom::model
