#include "harness/engine/kv_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "harness/core/error.h"

namespace fathom::engine {
namespace {

/// `old` ([heads, old_capacity] rows) in room for `capacity` rows a head; the first `used` rows of each are kept.
std::vector<std::byte> regrown_rows(const std::vector<std::byte>& old, std::int64_t n_heads, std::size_t row_bytes,
                                    std::int64_t old_capacity, std::int64_t capacity, std::int64_t used) {
  // Zeros, because attention may read rows past the last key: they do not count, but they must be memory.
  std::vector<std::byte> grown(static_cast<std::size_t>(n_heads * capacity) * row_bytes);
  for (std::int64_t head = 0; head < n_heads && used > 0; ++head) {
    std::memcpy(grown.data() + static_cast<std::size_t>(head * capacity) * row_bytes,
                old.data() + static_cast<std::size_t>(head * old_capacity) * row_bytes,
                static_cast<std::size_t>(used) * row_bytes);
  }
  return grown;
}

}  // namespace

KvCache::KvCache(const checkpoint::DecoderConfig& config, kernels::ElementType type) : type_(type) {
  layers_.reserve(config.layers.size());
  for (const checkpoint::LayerSpec& spec : config.layers)
    layers_.push_back({spec.n_kv_heads, spec.d_head, {}, {}, checkpoint::remembered_width(config, spec), {}});
}

void KvCache::reserve(std::int64_t n_tokens) {
  if (n_tokens <= capacity_) return;
  // Layer by layer, so that the peak is the old cache plus one layer. If memory runs out halfway, nothing is lost but
  // the content.
  const std::int64_t old_capacity = std::exchange(capacity_, 0);
  const std::int64_t used = std::exchange(length_, 0);
  for (Layer& layer : layers_) {
    const std::size_t row_bytes = static_cast<std::size_t>(layer.d_head) * kernels::element_size_bytes(type_);
    layer.keys = regrown_rows(layer.keys, layer.n_kv_heads, row_bytes, old_capacity, n_tokens, used);
    layer.values = regrown_rows(layer.values, layer.n_kv_heads, row_bytes, old_capacity, n_tokens, used);
    layer.remembered.resize(static_cast<std::size_t>(n_tokens * layer.remembered_width));
  }
  capacity_ = n_tokens;
  length_ = used;
}

void KvCache::truncate(std::int64_t n_tokens) {
  FATHOM_CHECK(n_tokens >= 0, "a cache cannot be cut to a negative length");
  length_ = std::min(length_, n_tokens);
}

void KvCache::copy_prefix(const KvCache& other, std::int64_t n_tokens) {
  FATHOM_CHECK(n_tokens <= other.length_ && other.layers_.size() == layers_.size() && other.type_ == type_,
               "a prefix is copied from a shorter cache or one of another shape");
  truncate(0);
  reserve(n_tokens);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& from = other.layers_[i];
    const std::size_t row_bytes = static_cast<std::size_t>(from.d_head) * kernels::element_size_bytes(type_);
    for (std::int64_t head = 0; head < from.n_kv_heads; ++head) {
      const std::size_t to_byte = static_cast<std::size_t>(head * capacity_) * row_bytes;
      const std::size_t from_byte = static_cast<std::size_t>(head * other.capacity_) * row_bytes;
      const std::size_t size = static_cast<std::size_t>(n_tokens) * row_bytes;
      std::memcpy(layers_[i].keys.data() + to_byte, from.keys.data() + from_byte, size);
      std::memcpy(layers_[i].values.data() + to_byte, from.values.data() + from_byte, size);
    }
    std::copy_n(from.remembered.begin(), n_tokens * from.remembered_width, layers_[i].remembered.begin());
  }
  length_ = n_tokens;
  rotation_state_ = other.rotation_state_;
}

void KvCache::set_length(std::int64_t n_tokens) {
  FATHOM_CHECK(n_tokens >= 0 && n_tokens <= capacity_,
               fmt::format("cache length {} is outside its room for {}", n_tokens, capacity_));
  length_ = n_tokens;
}

void* KvCache::keys(std::int64_t layer) {
  return layers_.at(static_cast<std::size_t>(layer)).keys.data();
}

void* KvCache::values(std::int64_t layer) {
  return layers_.at(static_cast<std::size_t>(layer)).values.data();
}

float* KvCache::remembered(std::int64_t layer) {
  return layers_.at(static_cast<std::size_t>(layer)).remembered.data();
}

std::size_t KvCache::size_bytes() const {
  std::size_t total = 0;
  for (const Layer& layer : layers_) {
    total += layer.keys.size() + layer.values.size() + layer.remembered.size() * sizeof(float);
  }
  return total;
}

}  // namespace fathom::engine
