#pragma once
// Small decoders and random tensors for the model tests.

#include <torch/torch.h>

#include <string>
#include <vector>

#include "harness/checkpoint/decoder_config.h"
#include "harness/model/decoder_lm.h"

namespace fathom::test {

/// Uniform in -1..1, a function of the seed alone.
inline torch::Tensor random_tensor(torch::IntArrayRef shape, std::uint64_t seed, torch::Dtype dtype = torch::kFloat32) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return torch::rand(shape, generator, torch::TensorOptions().dtype(torch::kFloat64)).mul_(2).sub_(1).to(dtype);
}

/// Two layers, four query heads on two key-value heads, 40 words.
inline checkpoint::DecoderConfig tiny_config(const std::string& scheme) {
  checkpoint::DecoderConfig config;
  config.architecture = "fathom";
  config.vocab_size = 40;
  config.d_model = 16;
  config.claimed_context = 64;
  config.trained_context = 64;
  config.norm = checkpoint::NormKind::kLayer;
  config.norm_bias = true;
  config.activation = checkpoint::Activation::kGelu;
  config.gated_mlp = false;
  config.mlp_bias = true;
  checkpoint::LayerSpec layer;
  layer.n_heads = 4;
  layer.n_kv_heads = 2;
  layer.d_head = 8;
  layer.d_ff = 24;
  layer.position.kind = scheme;
  if (position::position_infos().at(scheme).rotates) {
    layer.position.rotary_dim = 8;
    layer.position.rope_base = 100;
    layer.position.scaling.original_context = 64;
  }
  config.layers = {layer, layer};
  return config;
}

/// A decoder with every parameter drawn, norms near 1.
inline std::shared_ptr<model::DecoderLm> make_tiny_decoder(const checkpoint::DecoderConfig& config) {
  const torch::NoGradGuard no_grad;
  auto decoder = std::make_shared<model::DecoderLm>(config, torch::kFloat32);
  std::uint64_t seed = 1;
  for (auto& item : decoder->named_parameters()) {
    torch::Tensor values = item.value();
    const bool is_norm = item.key().find("norm.weight") != std::string::npos;
    values.copy_(random_tensor(values.sizes(), seed++) * 0.5 + (is_norm ? 1.0 : 0.0));
  }
  return decoder;
}

inline torch::Tensor counted_positions(std::int64_t batch, std::int64_t seq) {
  return torch::arange(seq, torch::kInt64).unsqueeze(0).expand({batch, seq});
}

inline double largest_difference(const torch::Tensor& a, const torch::Tensor& b) {
  return (a.to(torch::kFloat64) - b.to(torch::kFloat64)).abs().max().item<double>();
}

}  // namespace fathom::test
