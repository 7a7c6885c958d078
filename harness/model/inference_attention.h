#pragma once
// Attention without gradients on the CPU: over KV caches, packed sequences, and every hook of a position scheme.

#include <torch/types.h>

#include <utility>

#include "harness/model/ops.h"

namespace fathom::model {

/// Rotates queries and keys, appends keys and values to the caches, attends. See ops::attention().
///
/// Schemes whose bias depends on positions and head only (or that have none) run on kernels::block_attention(). A bias
/// made from queries, keys or hidden states, and the remaps, run block by block on LibTorch in float32; their
/// caches hold keys before rotation.
torch::Tensor inference_attention(const ops::AttentionCall& call);

/// Writes a sequence's keys and values as they are to its cache. All that the cache then holds, [1, n, n_kv_heads,
/// d_head] float32 each.
std::pair<torch::Tensor, torch::Tensor> append_to_cache(const ops::AttentionCall& call, const SequenceSpan& span);

}  // namespace fathom::model
