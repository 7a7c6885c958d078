#pragma once
// CPU kernels of the training path: one block of causal attention, forward and backward, in float32 on raw memory.
// Torch-free.

#include <cstdint>

namespace fathom::model {

/// Where one block of queries meets one block of keys. Query i and key j of a row stand at indices q_begin + i and
/// k_begin + j; key j is visible iff its index is at most the query's, above the query's minus `window` if that is not
/// 0, and not before the start of the query's sequence.
struct AttentionBlock {
  std::int64_t batch = 0;
  std::int64_t seq = 0;
  std::int64_t n_heads = 0;
  std::int64_t n_kv_heads = 0;
  std::int64_t d_head = 0;
  std::int64_t q_begin = 0, n_q = 0;
  std::int64_t k_begin = 0, n_k = 0;
  std::int64_t window = 0;
  float scale = 1;
  const float* q = nullptr;  ///< [batch, seq, n_heads, d_head], all positions
  const float* k = nullptr;  ///< [batch, seq, n_kv_heads, d_head]
  const float* v = nullptr;
  const float* bias = nullptr;                    ///< [batch or 1, n_heads, n_q, n_k] or null
  std::int64_t bias_batch_stride = 0;             ///< 0: one bias for all rows of the batch
  const std::int64_t* sequence_starts = nullptr;  ///< [batch or 1, seq] first index of each token's sequence; null = 0
  std::int64_t starts_batch_stride = 0;
};

/// Running softmax over the key blocks seen so far.
struct AttentionState {
  float* row_max = nullptr;  ///< [batch, n_heads, seq], starts at -infinity
  float* row_sum = nullptr;  ///< [batch, n_heads, seq], starts at 0
  float* out = nullptr;      ///< [batch, seq, n_heads, d_head], not yet divided by row_sum; starts at 0
};

/// Adds one key block to the state.
void attention_block_forward(const AttentionBlock& block, const AttentionState& state);

/// Divides `out` by row_sum and turns row_max into the log-sum-exp of each row.
void attention_block_finish(const AttentionBlock& block, const AttentionState& state);

struct AttentionGradient {
  const float* log_sum_exp = nullptr;  ///< [batch, n_heads, seq]
  const float* out_dot = nullptr;      ///< [batch, n_heads, seq]: sum of out * d_out over d_head
  const float* d_out = nullptr;        ///< [batch, seq, n_heads, d_head]
  float* d_q = nullptr;                ///< added to, like d_k and d_v
  float* d_k = nullptr;
  float* d_v = nullptr;
  /// [d_bias_slots, n_heads, n_q, n_k], overwritten; null if nobody asks. Row b of the batch is added to slot b modulo
  /// d_bias_slots: where one bias serves all rows, a few slots save most of the memory traffic.
  float* d_bias = nullptr;
  std::int64_t d_bias_slots = 0;
};

/// Recomputes the block's probabilities and adds its share of every gradient.
void attention_block_backward(const AttentionBlock& block, const AttentionGradient& gradient);

}  // namespace fathom::model
