#pragma once
// Differentiable causal attention in blocks: memory linear in the sequence length, the backward pass recomputes.

#include <torch/types.h>

#include <cstdint>

#include "harness/position/position_scheme.h"

namespace fathom::model {

struct BlockAttentionInput {
  torch::Tensor q;          ///< [batch, seq, n_heads, d_head], rotated and scaled by query_scale
  torch::Tensor k, v;       ///< [batch, seq, n_kv_heads, d_head]
  torch::Tensor positions;  ///< [batch, seq] int64; where a position does not rise, a new sequence begins
  torch::Tensor hidden;     ///< [batch, seq, d_model]; may be undefined unless the scheme needs it
  position::PositionScheme* scheme = nullptr;
  double softmax_scale = 1;
  std::int64_t window = 0;        ///< 0 = none
  std::int64_t block_size = 256;  ///< queries and keys per block
  torch::Tensor sequence_starts;  ///< found from the positions; need not be given
};

/// softmax(scale * q k^T + bias) v, causal within each sequence. [batch, seq, n_heads, d_head]. Gradients reach q, k,
/// v, hidden and the parameters that the scheme's bias reads. A row may hold several sequences one after the other: one
/// ends where the next position is not above it, so that packed rows restart at 0, and left padding is any repeated
/// position. CPU float32 runs on harness/model/train_kernels.h, everything else on LibTorch operations; bf16 and half
/// inputs are computed in float32.
torch::Tensor block_attention(const BlockAttentionInput& input);

}  // namespace fathom::model
