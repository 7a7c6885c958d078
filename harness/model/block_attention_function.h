#pragma once
// Differentiable causal attention in blocks: memory linear in the sequence length, the backward pass recomputes.

#include <torch/types.h>

#include <cstdint>

#include "harness/position/position_scheme.h"

namespace fathom::model {

struct BlockAttentionInput {
  torch::Tensor q;          ///< [batch, seq, n_heads, d_head], rotated and scaled by query_scale
  torch::Tensor k, v;       ///< [batch, seq, n_kv_heads, d_head]
  torch::Tensor positions;  ///< [batch, seq] int64, rising within a row
  torch::Tensor hidden;     ///< [batch, seq, d_model]; may be undefined unless the scheme needs it
  position::PositionScheme* scheme = nullptr;
  double softmax_scale = 1;
  std::int64_t window = 0;        ///< 0 = none
  std::int64_t block_size = 256;  ///< queries and keys per block
};

/// softmax(scale * q k^T + bias) v, causal within each row. [batch, seq, n_heads, d_head]. Gradients reach q, k, v,
/// hidden and the scheme's parameters. CPU float32 runs on harness/model/train_kernels.h, everything else on LibTorch
/// operations.
torch::Tensor block_attention(const BlockAttentionInput& input);

}  // namespace fathom::model
