#pragma once
// Small decoders and random tensors for the model tests.

#include <torch/torch.h>

#include <map>
#include <string>
#include <vector>

#include "harness/checkpoint/decoder_config.h"
#include "harness/core/random.h"
#include "harness/core/text_util.h"
#include "harness/model/decoder_lm.h"

namespace fathom::test {

/// Uniform in -1..1, a function of the seed alone.
inline torch::Tensor random_tensor(torch::IntArrayRef shape, std::uint64_t seed, torch::Dtype dtype = torch::kFloat32) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return torch::rand(shape, generator, torch::TensorOptions().dtype(torch::kFloat64)).mul_(2).sub_(1).to(dtype);
}

/// A scheme with the options of one variant of it.
struct SchemeVariant {
  std::string scheme;
  std::map<std::string, std::string> options;
  std::string text() const {
    std::string out = scheme;
    for (const auto& [key, value] : options) out += " " + key + "=" + value;
    return out;
  }
};

/// Every registered scheme as it is by default, with each switch turned over, and with each other word of a choice.
inline std::vector<SchemeVariant> scheme_variants() {
  std::vector<SchemeVariant> out;
  for (const position::PositionInfo& info : position::position_infos().entries()) {
    out.push_back({std::string(info.name), {}});
    for (const OptionDescription& option : info.describe()) {
      if (option.type != "on/off" && option.type != "choice") continue;
      for (const std::string& word : split_list(option.allowed)) {
        if (word != option.default_value) out.push_back({std::string(info.name), {{option.name, word}}});
      }
    }
  }
  return out;
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

inline checkpoint::DecoderConfig tiny_config(const SchemeVariant& variant, std::int64_t context = 64) {
  checkpoint::DecoderConfig config = tiny_config(variant.scheme);
  config.claimed_context = context;
  config.trained_context = context;
  for (checkpoint::LayerSpec& layer : config.layers) layer.position.options = variant.options;
  return config;
}

/// A decoder with every parameter drawn, norms near 1, a scheme's own parameters around where training starts them.
inline std::shared_ptr<model::DecoderLm> make_tiny_decoder(const checkpoint::DecoderConfig& config) {
  const torch::NoGradGuard no_grad;
  auto decoder = std::make_shared<model::DecoderLm>(config, torch::kFloat32);
  std::uint64_t seed = 1;
  for (auto& item : decoder->named_parameters()) {
    torch::Tensor values = item.value();
    const bool is_norm = item.key().find("norm.weight") != std::string::npos;
    values.copy_(random_tensor(values.sizes(), seed++) * 0.5 + (is_norm ? 1.0 : 0.0));
  }
  for (std::int64_t layer = 0; layer < config.n_layers(); ++layer) {
    for (auto& item : decoder->scheme(layer).named_parameters()) {
      if (item.key() == "position_embedding") continue;  // drawn above: it belongs to the decoder
      torch::Tensor start = torch::empty(item.value().sizes());
      RngStream rng(RngKey(item.key() + std::to_string(layer)));
      decoder->scheme(layer).draw_parameter(item.key(), start, rng);
      item.value().add_(start);
    }
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
