#include "harness/model/ops.h"

#include <ATen/core/grad_mode.h>

#include "harness/model/ops_inference.h"
#include "harness/model/ops_train.h"

namespace fathom::model::ops {
namespace {

bool runs_fused(const torch::Tensor& x) {
  return !at::GradMode::is_enabled() && x.device().is_cpu() && x.scalar_type() != torch::kDouble;
}

}  // namespace

torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias) {
  return runs_fused(x) ? inference::linear(x, weight, bias) : train::linear(x, weight, bias);
}

torch::Tensor norm(const torch::Tensor& x, checkpoint::NormKind kind, const torch::Tensor& weight,
                   const torch::Tensor& bias, double eps) {
  return runs_fused(x) ? inference::norm(x, kind, weight, bias, eps) : train::norm(x, kind, weight, bias, eps);
}

torch::Tensor activate(const torch::Tensor& x, checkpoint::Activation activation) {
  return runs_fused(x) ? inference::activate(x, activation) : train::activate(x, activation);
}

torch::Tensor gated(const torch::Tensor& gate, const torch::Tensor& up, checkpoint::Activation activation) {
  return runs_fused(gate) ? inference::gated(gate, up, activation) : train::gated(gate, up, activation);
}

torch::Tensor attention(const AttentionCall& call) {
  return runs_fused(call.q) ? inference::attention(call) : train::attention(call);
}

}  // namespace fathom::model::ops
