#pragma once
// Differentiable x w^T + b whose three products run on oneDNN: OpenBLAS keeps threads of its own, and two cores gain
// nothing from them on matrices this small.

#include <torch/types.h>

namespace fathom::model {

/// True for float32 matrices on the CPU with enough rows.
bool fused_linear_applies(const torch::Tensor& x, const torch::Tensor& weight);

/// x: [.., in] float32; weight: [out, in] float32; bias: [out] float32 or undefined. Result [.., out] float32. Where
/// the processor multiplies bf16, inputs, weights and incoming gradients are rounded to bf16 before each product
/// (relative error 2^-9 an element); outputs and gradients are not, and elsewhere nothing is.
torch::Tensor fused_linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias);

}  // namespace fathom::model
