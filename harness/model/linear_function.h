#pragma once
// Differentiable x w^T + b whose three products run on bf16 inputs with float32 sums and results.

#include <torch/types.h>

namespace fathom::model {

/// True where linear_bf16() is the faster way: bf16 matrix products in the processor, float32 tensors on the CPU,
/// enough rows.
bool linear_runs_on_bf16(const torch::Tensor& x, const torch::Tensor& weight);

/// x: [.., in] float32; weight: [out, in] float32; bias: [out] float32 or undefined. Result [.., out] float32. Inputs,
/// weights and incoming gradients are rounded to bf16 before each product (relative error 2^-9 an element); outputs and
/// gradients are not.
torch::Tensor linear_bf16(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias);

}  // namespace fathom::model
