#pragma once
// Causal convolutions over a few tokens, channel by channel.

#include <torch/types.h>

#include "harness/model/ops.h"

namespace fathom::model {

/// x[t] + sum over i of weight[:, 0, i] x[t - (n - 1) + i] with n the last dimension of weight and nothing before the
/// first token. x: [batch, seq, channels]; weight: [channels, 1, n]. With caches the inputs are remembered from column
/// `offset` of KvCache::remembered() on, and those of earlier tokens read there.
torch::Tensor short_convolution(const ops::AttentionCall& call, const torch::Tensor& x, const torch::Tensor& weight,
                                std::int64_t offset);

/// What the caches remember of all tokens of a sequence, columns offset .. offset + rows.size(-1) - 1, after `rows`
/// [n_tokens, channels] of its new tokens were written there. [tokens so far, channels] float32, sharing the memory.
torch::Tensor remember(const ops::AttentionCall& call, const SequenceSpan& span, const torch::Tensor& rows,
                       std::int64_t offset, std::int64_t width);

}  // namespace fathom::model
