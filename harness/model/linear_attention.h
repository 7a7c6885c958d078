#pragma once
// Attention without softmax whose weights fade with the distance. Computed block by block from the cached keys and
// values, so that a cache can be cut off and copied as that of any other attention: quadratic in time, linear in
// memory.

#include <torch/types.h>

#include "harness/model/ops.h"

namespace fathom::model {

/// out_i = sum over j <= i of exp(-slope_h (i - j)) (q_i . k_j) v_j with slope_h = 2^(-8 (h + 1) / n_heads)
/// slope_factor (MiniMax-01, arXiv 2501.08313, section 2.2). [batch, seq, n_heads * d_head] float32
torch::Tensor lightning_attention(const ops::AttentionCall& call);

/// out_i = sum_j w_ij v_j / max(|sum_j w_ij|, 1) but for an epsilon, and where LinearSpec::state_chunk says so with
/// sums rounded to bf16 on the way, w_ij = exp(F_i - F_j + input_j) (q_i . k_j) / sqrt(d_key) for j <= i, F_i = sum
/// over t <= i of log sigmoid(forget_t) (xLSTM, Beck et al. 2024, section 2.3, in its parallel form). Gates: [batch,
/// seq, n_heads]. [batch, seq, n_heads * d_head] float32
torch::Tensor mlstm_attention(const ops::AttentionCall& call, const torch::Tensor& input_gate,
                              const torch::Tensor& forget_gate);

}  // namespace fathom::model
