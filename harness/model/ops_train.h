#pragma once
// The differentiable implementations of harness/model/ops.h, on LibTorch. They also serve every device and dtype the
// fused ones do not.

#include <torch/types.h>

#include "harness/checkpoint/decoder_config.h"
#include "harness/model/ops.h"

namespace fathom::model::ops::train {

torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias);
torch::Tensor norm(const torch::Tensor& x, checkpoint::NormKind kind, const torch::Tensor& weight,
                   const torch::Tensor& bias, double eps);
torch::Tensor activate(const torch::Tensor& x, checkpoint::Activation activation);
torch::Tensor gated(const torch::Tensor& gate, const torch::Tensor& up, checkpoint::Activation activation);
/// \throws ModelError for packed sequences and for position remaps: those are inference features.
torch::Tensor attention(const AttentionCall& call);

}  // namespace fathom::model::ops::train
