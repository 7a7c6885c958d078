#pragma once
// Element-wise work of a decoder on rows of float32, parallel over rows. A row's result does not depend on the rows
// beside it or on the number of threads. Between matrix products this is memory traffic, so every function reads its
// input once and writes what the next step wants.

#include <cstdint>

#include "harness/kernels/element_type.h"

namespace fathom::kernels {

/// x: [n_rows, width] with row stride `stride`. `out` has rows of `out_stride`; its type is the caller's choice.
struct RowsCall {
  const float* x = nullptr;
  std::int64_t n_rows = 0;
  std::int64_t width = 0;
  std::int64_t stride = 0;
  void* out = nullptr;
  std::int64_t out_stride = 0;
  ElementType out_type = ElementType::kFloat32;
};

/// x / sqrt(mean(x^2) + eps) * weight, plus bias where not null (Zhang and Sennrich 2019).
void rms_norm_rows(const RowsCall& rows, const float* weight, const float* bias, double eps);
/// (x - mean) / sqrt(variance + eps) * weight + bias; weight and bias may be null.
void layer_norm_rows(const RowsCall& rows, const float* weight, const float* bias, double eps);

enum class ActivationKind {
  kSilu,      ///< x sigmoid(x)
  kGelu,      ///< x Phi(x); Phi by a rational formula, error 1.5e-7
  kGeluTanh,  ///< x sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)), the tanh form
  kRelu,
  kReluSquared  ///< max(x, 0)^2
};
/// act(x), times `up` (laid out like x) where not null.
void activate_rows(const RowsCall& rows, ActivationKind kind, const float* up);

/// Copies rows, to bf16 where out_type says so (nearest even).
void convert_rows(const RowsCall& rows);

/// x[i, :] += bias, in place.
void add_bias_rows(float* x, std::int64_t n_rows, std::int64_t width, const float* bias);
/// x[i] += y[i], in place.
void add_in_place(float* x, const float* y, std::int64_t n);

}  // namespace fathom::kernels
