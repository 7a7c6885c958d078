#pragma once
// Tiny random decoders behind the Checkpoint interface, for tests of the engine.

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/checkpoint/checkpoint.h"
#include "harness/core/error.h"

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
  explicit RandomCheckpoint(const checkpoint::DecoderConfig& config) : config_(config) {
    add("token_embedding", {config.vocab_size, config.d_model});
    for (std::int64_t i = 0; i < config.n_layers(); ++i) {
      const checkpoint::LayerSpec& layer = config.layers[static_cast<std::size_t>(i)];
      const std::string prefix = "layers." + std::to_string(i) + ".";
      add(prefix + "attention_norm.weight", {config.d_model});
      add(prefix + "attention.q.weight", {layer.n_heads * layer.d_head, config.d_model});
      add(prefix + "attention.k.weight", {layer.n_kv_heads * layer.d_head, config.d_model});
      add(prefix + "attention.v.weight", {layer.n_kv_heads * layer.d_head, config.d_model});
      add(prefix + "attention.o.weight", {config.d_model, layer.n_heads * layer.d_head});
      add(prefix + "mlp_norm.weight", {config.d_model});
      add(prefix + "mlp.gate.weight", {layer.d_ff, config.d_model});
      add(prefix + "mlp.up.weight", {layer.d_ff, config.d_model});
      add(prefix + "mlp.down.weight", {config.d_model, layer.d_ff});
    }
    add("final_norm.weight", {config.d_model});
    add("head.weight", {config.vocab_size, config.d_model});
    if (config.layers[0].position.kind == "learned")
      add("position_embedding", {config.claimed_context, config.d_model});
  }

  const checkpoint::DecoderConfig& config() const override { return config_; }
  const std::vector<checkpoint::TensorInfo>& tensors() const override { return tensors_; }
  void read_float32(std::string_view name, std::int64_t row_begin, std::int64_t row_end, float* out) const override {
    for (const checkpoint::TensorInfo& tensor : tensors_) {
      if (tensor.name != name) continue;
      const std::int64_t width = tensor.shape.size() == 1 ? 1 : tensor.shape[1];
      const bool is_norm = tensor.shape.size() == 1;
      std::uint64_t seed = 0;
      for (const char c : tensor.name) seed = seed * 131 + static_cast<std::uint64_t>(c);
      for (std::int64_t i = row_begin * width; i < row_end * width; ++i) {
        std::uint64_t x = (seed + static_cast<std::uint64_t>(i)) * 0x9e3779b97f4a7c15ULL;
        x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ULL;
        x ^= x >> 32;
        const double uniform = static_cast<double>(x >> 11) * 0x1.0p-53 * 2 - 1;
        // Large enough for logits that differ by several units, so that greedy choices are clear.
        *out++ = static_cast<float>(is_norm ? 1 + 0.2 * uniform
                                            : uniform * 3 / std::sqrt(static_cast<double>(config_.d_model)));
      }
      return;
    }
    throw ModelError("no tensor");
  }
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
  void add(const std::string& name, std::vector<std::int64_t> shape) {
    tensors_.push_back({name, std::move(shape), "F32"});
  }

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
