#pragma once
// Attention without gradients on the CPU: over KV caches, packed sequences, and every hook of a position scheme.

#include <torch/types.h>

#include "harness/model/ops.h"

namespace fathom::model {

/// Rotates queries and keys, appends keys and values to the caches, attends. See ops::attention().
///
/// Schemes whose bias depends on positions and head only (or that have none) run on kernels::block_attention(). A bias
/// made from queries, keys or hidden states, and the remaps, run block by block on LibTorch in float32; their
/// caches hold keys before rotation.
torch::Tensor inference_attention(const ops::AttentionCall& call);

}  // namespace fathom::model
