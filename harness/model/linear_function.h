#pragma once
// Differentiable x w^T + b whose three products run on oneDNN: OpenBLAS keeps threads of its own, and two cores gain
// nothing from them on matrices this small.

#include <torch/types.h>

namespace fathom::model {

/// True for float32 matrices on the CPU with enough rows.
bool fused_linear_applies(const torch::Tensor& x, const torch::Tensor& weight);

/// While one lives on a thread, fused_linear() there rounds inputs, weights and incoming gradients to bf16 before each
/// product (relative error 2^-9 an element) if the processor multiplies bf16; outputs and gradients stay float32. For
/// training: a comparison of logits must not depend on the processor.
class Bf16ProductScope {
 public:
  Bf16ProductScope();
  ~Bf16ProductScope();
  Bf16ProductScope(const Bf16ProductScope&) = delete;
  Bf16ProductScope& operator=(const Bf16ProductScope&) = delete;

 private:
  bool outer_;
};

/// x: [.., in] float32; weight: [out, in] float32; bias: [out] float32 or undefined. Result [.., out] float32. The
/// backward pass multiplies in the precision of its forward pass.
torch::Tensor fused_linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias);

}  // namespace fathom::model
