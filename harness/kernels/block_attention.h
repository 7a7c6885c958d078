#pragma once
// Blocked attention with running softmax: memory linear in length, no [length x length] tensor. Raw memory, no torch.

#include <cstdint>
#include <functional>
#include <vector>

#include "harness/kernels/element_type.h"

namespace fathom::kernels {

/// Fills a block of additive logit bias, in float32, for one batch row. Called from several threads at once.
///
/// \param head        query head.
/// \param q_positions [n_q] and k_positions [n_k]: tokens from the start of the sequence.
/// \param bias        [n_q, n_k] row-major with row stride `stride`; to be overwritten.
using BiasFunction =
    std::function<void(std::int64_t head, const std::int32_t* q_positions, std::int64_t n_q,
                       const std::int32_t* k_positions, std::int64_t n_k, float* bias, std::int64_t stride)>;

/// One sequence's share of an attention call. Keys are visible iff k_position <= q_position, and k_position >
/// q_position - window if a window is set. Key slot j of the cache has position j, so a causal call needs no mask
/// tensor.
struct AttentionSequence {
  const void* q = nullptr;  ///< [n_q, n_heads, d_head], element type as in the call, rotated
  const void* k = nullptr;  ///< [n_kv_heads, k_capacity, d_head], rotated; slots 0 .. n_k-1 are valid
  const void* v = nullptr;  ///< [n_kv_heads, k_capacity, d_head]
  float* out = nullptr;     ///< [n_q, n_heads, d_head]
  std::int64_t n_q = 0;
  std::int64_t n_k = 0;  ///< cached keys including those of these queries: n_k >= first_position + n_q
  std::int64_t k_capacity = 0;
  std::int64_t first_position = 0;  ///< position of query 0; query i has first_position + i
};

struct AttentionShape {
  std::int64_t n_heads = 0;
  std::int64_t n_kv_heads = 0;  ///< divides n_heads
  std::int64_t d_head = 0;
  float softmax_scale = 1;                   ///< multiplies q.k before the bias is added
  std::int64_t window = 0;                   ///< 0 = none
  std::int64_t chunk = 0;                    ///< above 0: only keys with k_position / chunk == q_position / chunk
  float softcap = 0;                         ///< above 0: cap tanh(scale q.k / cap) in place of scale q.k
  const float* sinks = nullptr;              ///< [n_heads]: a logit a head with no key or value; null = none
  ElementType type = ElementType::kFloat32;  ///< of q, k, v; softmax, bias and output are float32 always
  BiasFunction bias;                         ///< empty = none
};

/// softmax(cap(scale * q.k) + bias) v for every sequence, parallel over sequences, KV heads and query blocks.
/// Deterministic: the result does not depend on the number of threads, nor on which other sequences are in the call.
void block_attention(const AttentionShape& shape, const std::vector<AttentionSequence>& sequences);

/// Name and version of the path taken on this processor, for provenance: "onednn-bf16/1", "float32/1", …
const char* attention_kernel_name(ElementType type);

/// True where bf16 matrix products are done by the processor (avx512_bf16, AMX).
bool has_native_bf16();

}  // namespace fathom::kernels
