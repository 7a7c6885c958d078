#include "harness/model/ops_train.h"

#include <ATen/Functions.h>

#include <cmath>

#include "harness/core/error.h"
#include "harness/model/block_attention_function.h"
#include "harness/model/linear_function.h"

namespace fathom::model::ops::train {

torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias) {
  if (fused_linear_applies(x, weight)) return fused_linear(x, weight, bias);
  const torch::Tensor matrix = weight.scalar_type() == x.scalar_type() ? weight : weight.to(x.scalar_type());
  return at::linear(x, matrix, bias.defined() ? c10::optional<torch::Tensor>(bias.to(x.scalar_type())) : c10::nullopt);
}

torch::Tensor norm(const torch::Tensor& x, checkpoint::NormKind kind, const torch::Tensor& weight,
                   const torch::Tensor& bias, double eps) {
  switch (kind) {
    case checkpoint::NormKind::kLayer:
      return at::layer_norm(x, {x.size(-1)}, weight, bias, eps);
    case checkpoint::NormKind::kRms: {
      torch::Tensor scaled = x * (x.square().mean(-1, true) + eps).rsqrt();
      if (weight.defined()) scaled = scaled * weight;
      return bias.defined() ? scaled + bias : scaled;
    }
  }
  throw InvariantError("unknown norm kind");
}

torch::Tensor activate(const torch::Tensor& x, checkpoint::Activation activation) {
  switch (activation) {
    case checkpoint::Activation::kSilu:
      return at::silu(x);
    case checkpoint::Activation::kGelu:
      return at::gelu(x, "none");
    case checkpoint::Activation::kGeluTanh:
      return at::gelu(x, "tanh");
    case checkpoint::Activation::kRelu:
      return at::relu(x);
    case checkpoint::Activation::kReluSquared:
      return at::relu(x).square();
  }
  throw InvariantError("unknown activation");
}

torch::Tensor gated(const torch::Tensor& gate, const torch::Tensor& up, checkpoint::Activation activation) {
  return train::activate(gate, activation) * up;
}

torch::Tensor attention(const AttentionCall& call) {
  if (call.sequences != nullptr)
    throw ModelError("model: packed sequences and caches need the fused path: CPU tensors and no gradients");
  position::PositionScheme& scheme = *call.scheme;
  if (scheme.n_regions() > 1) {
    throw ModelError("model: a position remap works at inference on the CPU only");
  }
  if (call.spec->softcap > 0 || call.spec->chunk || call.sinks.defined()) {
    throw ModelError("model: soft-caps, chunks and sinks of an attention work at inference on the CPU only");
  }
  const std::int64_t batch = call.q.size(0), seq = call.q.size(1), width = call.q.size(2) * call.q.size(3);
  BlockAttentionInput input;
  input.q = call.q;
  input.k = call.k;
  if (scheme.rotates()) {
    input.q = scheme.rotate(input.q, position::Role::kQuery, call.positions, seq);
    input.k = scheme.rotate(input.k, position::Role::kKey, call.positions, seq);
  }
  const torch::Tensor query_scale = scheme.query_scale(call.positions);  // [batch, seq]
  if (query_scale.defined()) input.q = input.q * query_scale.unsqueeze(-1).unsqueeze(-1);
  input.v = call.v;
  input.positions = call.positions;
  if (scheme.needs_hidden()) input.hidden = call.hidden;
  input.scheme = &scheme;
  input.softmax_scale = call.spec->softmax_scale.value_or(1.0 / std::sqrt(static_cast<double>(call.spec->d_head))) *
                        scheme.softmax_scale_factor(seq);
  input.window = call.spec->window.value_or(0);
  return block_attention(input).reshape({batch, seq, width});
}

}  // namespace fathom::model::ops::train
