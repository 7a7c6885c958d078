#pragma once
// Vector loops behind block_attention() and gemm(), compiled for several instruction sets and chosen at run time
// (Highway). Internal to harness/kernels.

#include <cstdint>

#include "harness/kernels/element_type.h"

namespace fathom::kernels {

/// One block of scores on its way through a running softmax. Exponentials are powers of two: `scale` holds log2(e).
struct SoftmaxBlock {
  float* scores = nullptr;  ///< [rows, stride]; 64-byte aligned; overwritten, by the probabilities in float32 mode
  BFloat16Bits* probabilities = nullptr;  ///< [rows, stride] in bf16 mode, else null
  /// [rows, stride] or null; natural units. Masked columns may hold anything and are overwritten as far as vectors
  /// reach.
  float* bias = nullptr;
  std::int64_t stride = 0;   ///< multiple of 64
  std::int64_t width = 0;    ///< columns whose probabilities are written (0 where masked); at most stride
  float scale = 1;           ///< softmax scale * log2(e)
  float* row_max = nullptr;  ///< [rows], in powers of two; -infinity at the start
  float* row_sum = nullptr;  ///< [rows]
  float* out = nullptr;      ///< [rows, d]: rescaled where the maximum rises
  std::int64_t d = 0;
};

/// Rows row_begin + i, i < n, of the block: visible columns are [begin[i], end[i]) and may be none.
struct SoftmaxRows {
  std::int64_t row_begin = 0;
  std::int64_t n = 0;
  const std::int32_t* begin = nullptr;
  const std::int32_t* end = nullptr;
};
void softmax_rows(const SoftmaxBlock& block, const SoftmaxRows& rows);

/// scores[i] = cap tanh(scale scores[i] / cap); 64-byte aligned, written up to the next whole vectors.
void softcap_row(float* scores, float scale, float cap, std::int64_t n);

/// out[i] = in[i] * factor
void scale_row(const float* in, float factor, std::int64_t n, float* out);

/// A few rows times a matrix that is read once; see gemm().
struct FewRows {
  ElementType b_type = ElementType::kFloat32;
  std::int64_t m = 0, n = 0, k = 0;
  const float* a = nullptr;  ///< [m, k]
  std::int64_t a_stride = 0;
  const void* b = nullptr;
  std::int64_t b_stride = 0;
  float* c = nullptr;  ///< [m, n]
  std::int64_t c_stride = 0;
  float keep = 0;  ///< 0: c is overwritten; 1: added to
};
/// c[i, j] = sum_k a[i, k] b[j, k] for j in [n_begin, n_end)
void few_rows_dot(const FewRows& call, std::int64_t n_begin, std::int64_t n_end);
/// c[i, j] = sum_k a[i, k] b[k, j]
void few_rows_combine(const FewRows& call);

/// bf16 to float32, exact, and back, to nearest even.
void widen(const BFloat16Bits* in, std::int64_t n, float* out);
void narrow(const float* in, std::int64_t n, BFloat16Bits* out);

/// Name of the instruction set in force, as Highway calls it.
const char* vector_target_name();

}  // namespace fathom::kernels
