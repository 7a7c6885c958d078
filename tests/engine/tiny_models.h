#pragma once
// Tiny random decoders behind the Checkpoint interface, for tests of the engine.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/checkpoint/checkpoint.h"

namespace fathom::test {

struct TinyShape {
  std::int64_t n_layers = 2;
  std::int64_t n_heads = 4;
  std::int64_t n_kv_heads = 2;
  std::int64_t d_head = 16;
  std::int64_t vocab_size = 50;
  std::int64_t window = 0;
};

/// A decoder with RMS norms and a gated MLP; the position settings are those of a plain RoPE with base 10000 and L0
/// = 64.
inline checkpoint::DecoderConfig tiny_config(const TinyShape& shape = {}) {
  checkpoint::DecoderConfig config;
  config.name = "tiny";
  config.architecture = "fathom";
  config.vocab_size = shape.vocab_size;
  config.d_model = shape.n_heads * shape.d_head;
  config.claimed_context = 64;
  for (std::int64_t i = 0; i < shape.n_layers; ++i) {
    checkpoint::LayerSpec layer;
    layer.n_heads = shape.n_heads;
    layer.n_kv_heads = shape.n_kv_heads;
    layer.d_head = shape.d_head;
    layer.d_ff = 96;
    if (shape.window > 0) layer.window = shape.window;
    layer.position.rotary_dim = shape.d_head;
    layer.position.rope_base = 10000;
    layer.position.scaling.original_context = 64;
    config.layers.push_back(layer);
  }
  return config;
}

/// Random weights, made on demand from the tensor's name.
class RandomCheckpoint : public checkpoint::Checkpoint {
 public:
  /// The tensors are those that a decoder of this config asks for.
  explicit RandomCheckpoint(const checkpoint::DecoderConfig& config);

  const checkpoint::DecoderConfig& config() const override { return config_; }
  const std::vector<checkpoint::TensorInfo>& tensors() const override { return tensors_; }
  void read_float32(std::string_view name, std::int64_t row_begin, std::int64_t row_end, float* out) const override;
  bool has_tokenizer() const override { return false; }
  std::unique_ptr<text::Tokenizer> make_tokenizer() const override { return nullptr; }
  std::optional<text::ChatTemplate> chat_template() const override { return std::nullopt; }
  std::string fingerprint() const override { return "0123"; }

  void remove(const std::string& name) {
    for (auto it = tensors_.begin(); it != tensors_.end(); ++it) {
      if (it->name == name) {
        tensors_.erase(it);
        return;
      }
    }
  }

 private:
  checkpoint::DecoderConfig config_;
  std::vector<checkpoint::TensorInfo> tensors_;
};

/// Ids that look random and are the same on every machine.
inline TokenIds random_ids(std::int64_t n, std::uint64_t seed, std::int64_t vocab_size = 50) {
  TokenIds ids;
  std::uint64_t state = seed * 2654435761ULL + 12345;
  for (std::int64_t i = 0; i < n; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    ids.push_back(static_cast<TokenId>((state >> 33) % static_cast<std::uint64_t>(vocab_size)));
  }
  return ids;
}

}  // namespace fathom::test
