#pragma once
// Keys and values of one sequence, all layers. Rows are appended at the end and cut off at the end; slot j holds
// position j. Torch-free.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness/checkpoint/decoder_config.h"
#include "harness/kernels/block_attention.h"

namespace fathom::engine {

class KvCache {
 public:
  KvCache(const checkpoint::DecoderConfig& config, kernels::ElementType type);

  /// Tokens whose keys and values are complete in every layer.
  std::int64_t length() const { return length_; }
  std::int64_t capacity() const { return capacity_; }
  /// Makes room for `n_tokens` in all; existing rows are kept. \throws std::bad_alloc
  void reserve(std::int64_t n_tokens);
  /// Forgets everything from position `n_tokens` on.
  void truncate(std::int64_t n_tokens);
  /// Takes over the first `n_tokens` rows of a cache of the same shape, and its rotation state; what stood here is
  /// forgotten. \throws std::bad_alloc
  void copy_prefix(const KvCache& other, std::int64_t n_tokens);
  /// Called once per forward pass, after the last layer.
  void set_length(std::int64_t n_tokens);

  /// [n_kv_heads, capacity, d_head] of a layer; keys as the attention reads them (rotated).
  void* keys(std::int64_t layer);
  void* values(std::int64_t layer);
  /// [capacity, remembered_width()] float32 of a layer: what it remembers of a token besides.
  float* remembered(std::int64_t layer);
  kernels::ElementType type() const { return type_; }
  std::size_t size_bytes() const;

  /// Identity of the angle tables the keys were rotated with (PositionScheme::rotation_state of every layer, mixed).
  /// Keys of one state never meet queries of another: the engine starts afresh instead, except in mode hf, which is
  /// about just that. Keeping keys before rotation would not be enough, because the keys of deeper layers depend on the
  /// tables through the hidden states.
  std::uint64_t rotation_state() const { return rotation_state_; }
  void set_rotation_state(std::uint64_t state) { rotation_state_ = state; }

 private:
  struct Layer {
    std::int64_t n_kv_heads = 0;
    std::int64_t d_head = 0;
    std::vector<std::byte> keys;
    std::vector<std::byte> values;
    std::int64_t remembered_width = 0;
    std::vector<float> remembered;
  };
  std::vector<Layer> layers_;
  kernels::ElementType type_;
  std::int64_t length_ = 0;
  std::int64_t capacity_ = 0;
  std::uint64_t rotation_state_ = 0;
};

}  // namespace fathom::engine
