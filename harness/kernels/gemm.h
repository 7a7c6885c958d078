#pragma once
// Matrix products on raw memory: the one place that talks to oneDNN (versions 2 and 3).

#include <cstdint>
#include <string>

#include "harness/kernels/element_type.h"

namespace fathom::kernels {

/// How the second operand lies in memory.
enum class MatrixLayout {
  kRowsAreOutputs,  ///< b is [n, k], c = a b^T: a weight matrix, or the keys of an attention
  kRowsAreInputs    ///< b is [k, n], c = a b: the values of an attention
};
enum class GemmOutput { kOverwrite, kAccumulate };

struct GemmCall {
  ElementType type = ElementType::kFloat32;  ///< of a and b; sums and c are float32
  MatrixLayout layout = MatrixLayout::kRowsAreOutputs;
  GemmOutput output = GemmOutput::kOverwrite;
  std::int64_t m = 0, n = 0, k = 0;
  const void* a = nullptr;    ///< [m, k]
  std::int64_t a_stride = 0;  ///< elements from row to row, also below
  const void* b = nullptr;
  std::int64_t b_stride = 0;
  float* c = nullptr;  ///< [m, n]
  std::int64_t c_stride = 0;
};

/// c = a b^T or a b, plus c if accumulating. Parallel over OpenMP threads unless called inside a parallel region.
/// Thread-safe.
///
/// Up to 8 rows take a vector kernel that reads b once (decoding is bound by memory), more rows oneDNN. On both paths a
/// row of c depends on its row of a and on b only, not on m: oneDNN keeps that promise with AVX-512, and to rounding
/// (1e-6 relative) elsewhere. \throws InvariantError  if oneDNN refuses a product of this shape.
void gemm(const GemmCall& call);

/// "oneDNN 2.6.3", with the instruction set in force.
std::string gemm_version();

}  // namespace fathom::kernels
