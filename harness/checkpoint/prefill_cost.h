#pragma once
// What a prompt costs to compute, for estimates. Torch-free.

#include <cstdint>

#include "harness/checkpoint/checkpoint.h"

namespace fathom::checkpoint {

/// Keys that a token sees, itself included, in the mean over a sequence of `length_tokens`: window and chunk of the
/// layer count, and a layer without softmax attention sees none.
double mean_visible_keys(const LayerSpec& layer, std::int64_t length_tokens);

/// Floating-point operations, a multiply-add being two.
struct PrefillFlops {
  double matrices = 0;   ///< of the layers; of routed experts the share that a token takes
  double attention = 0;  ///< scores and weighted sums
};

/// Per token of a prompt of `length_tokens`. Embedding, head and vectors are left out.
PrefillFlops prefill_flops_per_token(const Checkpoint& checkpoint, std::int64_t length_tokens);

}  // namespace fathom::checkpoint
