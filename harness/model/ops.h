#pragma once
// The operations a decoder is made of. Each has two implementations behind one name: a differentiable one on LibTorch
// (training), and a fused one on harness/kernels (inference, when gradients are off and the tensors are on the CPU). A
// test holds them equal.

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "harness/checkpoint/decoder_config.h"
#include "harness/engine/kv_cache.h"
#include "harness/position/position_scheme.h"

namespace fathom::model {

/// One sequence inside a packed batch: tokens begin .. begin + n_tokens - 1 of the packed row.
struct SequenceSpan {
  std::int64_t begin = 0;
  std::int64_t n_tokens = 0;
  std::int64_t first_position = 0;   ///< tokens already in the cache
  std::int64_t total_len = 0;        ///< first_position + n_tokens, or what a length-dependent scheme shall use
  engine::KvCache* cache = nullptr;  ///< not owned; capacity for first_position + n_tokens
};

namespace ops {

/// x w^T + b. x: [.., in]; weight: [out, in] float32 or bf16; bias: [out] or undefined. Result [.., out] float32
/// (training under autocast: as autocast says).
torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias);

/// RMSNorm or LayerNorm over the last dimension, in float32. weight and bias may be undefined.
torch::Tensor norm(const torch::Tensor& x, checkpoint::NormKind kind, const torch::Tensor& weight,
                   const torch::Tensor& bias, double eps);

torch::Tensor activate(const torch::Tensor& x, checkpoint::Activation activation);
/// act(gate) * up
torch::Tensor gated(const torch::Tensor& gate, const torch::Tensor& up, checkpoint::Activation activation);

struct AttentionCall {
  torch::Tensor q;          ///< [batch, seq, n_heads, d_head], before rotation
  torch::Tensor k, v;       ///< [batch, seq, n_kv_heads, d_head], before rotation
  torch::Tensor positions;  ///< [batch, seq] int64
  torch::Tensor hidden;     ///< [batch, seq, d_model]: the attention's input, for schemes that need it
  std::int64_t layer = 0;
  const checkpoint::LayerSpec* spec = nullptr;
  position::PositionScheme* scheme = nullptr;
  /// Inference: the packed sequences (batch is 1). Empty: every row is a sequence of its own without a cache, positions
  /// as given.
  const std::vector<SequenceSpan>* sequences = nullptr;
  torch::Tensor sinks = {};  ///< [n_heads] or undefined: logits that only take a share of the softmax
};

/// Rotation, query scale, blocked causal attention with running softmax and the scheme's bias. Result [batch, seq,
/// n_heads * d_head]. Memory is linear in seq, in training too: the backward pass recomputes blocks.
torch::Tensor attention(const AttentionCall& call);

}  // namespace ops
}  // namespace fathom::model
