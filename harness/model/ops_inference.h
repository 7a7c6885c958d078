#pragma once
// The fused implementations of harness/model/ops.h on harness/kernels: no gradients, CPU tensors. Same arguments, same
// results within rounding. Only ops.cpp calls them.

#include <torch/types.h>

#include "harness/checkpoint/decoder_config.h"
#include "harness/model/ops.h"

namespace fathom::model::ops::inference {

torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias);
torch::Tensor norm(const torch::Tensor& x, checkpoint::NormKind kind, const torch::Tensor& weight,
                   const torch::Tensor& bias, double eps);
torch::Tensor activate(const torch::Tensor& x, checkpoint::Activation activation);
torch::Tensor gated(const torch::Tensor& gate, const torch::Tensor& up, checkpoint::Activation activation);
torch::Tensor attention(const AttentionCall& call);

}  // namespace fathom::model::ops::inference
