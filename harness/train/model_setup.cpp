#include "harness/train/model_setup.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/position/position_scheme.h"
#include "harness/train/curriculum.h"

namespace fathom::train {
namespace {

/// "none", "every N" (the layers N-1, 2N-1, …), or indices from 0.
std::vector<bool> parse_nope_layers(const std::string& pattern, std::int64_t n_layers) {
  const auto fail = [&](const std::string& why) {
    throw ConfigError(
        fmt::format("train: nope_layers = '{}' {}; allowed: none, 'every N', or layer numbers from 0 to {}", pattern,
                    why, n_layers - 1));
  };
  std::vector<bool> out(static_cast<std::size_t>(n_layers), false);
  if (pattern.empty() || pattern == "none") return out;
  if (starts_with(pattern, "every ")) {
    const auto interval = parse_int(trim(std::string_view(pattern).substr(6)));
    if (!interval || *interval < 1) fail("has no interval of at least 1");
    for (std::int64_t i = *interval - 1; i < n_layers; i += *interval) out[static_cast<std::size_t>(i)] = true;
    return out;
  }
  for (const std::string& item : split_list(pattern)) {
    const auto layer = parse_int(item);
    if (!layer || *layer < 0 || *layer >= n_layers) fail(fmt::format("holds '{}'", item));
    out[static_cast<std::size_t>(*layer)] = true;
  }
  return out;
}

checkpoint::RopeLayout parse_rope_layout(const std::string& name) {
  for (const auto layout : {checkpoint::RopeLayout::kSplitHalf, checkpoint::RopeLayout::kInterleaved,
                            checkpoint::RopeLayout::kInterleavedInSplitOut}) {
    if (checkpoint::to_string(layout) == name) return layout;
  }
  throw ConfigError(
      fmt::format("train: unknown rope layout '{}'; known: split_half, interleaved, interleaved_in_split_out", name));
}

checkpoint::RotarySide parse_rotary_side(const std::string& name) {
  for (const auto side : {checkpoint::RotarySide::kPrefix, checkpoint::RotarySide::kSuffix}) {
    if (checkpoint::to_string(side) == name) return side;
  }
  throw ConfigError(fmt::format("train: unknown rope side '{}'; known: prefix, suffix", name));
}

checkpoint::PositionSpec training_position(const TrainSpec& spec, std::int64_t d_head) {
  checkpoint::PositionSpec position;
  const position::PositionInfo& info = position::position_infos().at(spec.position);
  position.kind = spec.position;
  position.options = spec.scheme_options.values();
  if (spec.position == "learned" && position.options.count("positions") == 0)
    position.options["positions"] = std::to_string(spec.context);
  if (!info.rotates) return position;
  position.layout = parse_rope_layout(spec.rope_layout);
  position.side = parse_rotary_side(spec.rope_side);
  position.rope_base = spec.rope_base;
  position.rotary_dim = static_cast<std::int64_t>(static_cast<double>(d_head) * spec.rope_partial);
  if (position.rotary_dim < 2 || position.rotary_dim % 2 != 0 || position.rotary_dim > d_head) {
    throw ConfigError(fmt::format(
        "train: rope_partial = {} rotates {} of {} channels a head; the number must be even and within 2..{}",
        format_double(spec.rope_partial), position.rotary_dim, d_head, d_head));
  }
  position.scaling.original_context = spec.context;
  return position;
}

void draw_normal(torch::Tensor& values, double deviation, const RngKey& key) {
  RngStream rng(key);
  float* out = values.data_ptr<float>();
  for (std::int64_t i = 0; i < values.numel(); ++i) out[i] = static_cast<float>(deviation * rng.normal());
}

/// Lets the scheme draw a parameter named "layers.N.position.NAME".
void draw_scheme_parameter(model::DecoderLm& decoder, const std::string& name, torch::Tensor& values,
                           const RngKey& key) {
  const std::string prefix = "layers.", mark = ".position.";
  const std::size_t at = name.find(mark);
  const auto layer = parse_int(name.substr(prefix.size(), at - prefix.size()));
  FATHOM_CHECK(starts_with(name, prefix) && layer, "a scheme's parameter belongs to a layer");
  RngStream rng(key);
  decoder.scheme(*layer).draw_parameter(name.substr(at + mark.size()), values, rng);
}

}  // namespace

checkpoint::DecoderConfig make_training_config(const TrainSpec& spec, const Recipe& recipe, std::int64_t vocab_size) {
  checkpoint::DecoderConfig config;
  config.name = fmt::format("fathom-{}-{}-seed{}", spec.position, spec.recipe, spec.seed);
  config.architecture = "fathom";
  config.vocab_size = vocab_size;
  config.d_model = recipe.d_model;
  config.claimed_context = spec.context;
  config.trained_context = spec.context;
  config.norm = checkpoint::NormKind::kLayer;
  config.norm_bias = true;
  config.activation = checkpoint::Activation::kGelu;
  config.gated_mlp = false;
  config.mlp_bias = true;
  checkpoint::LayerSpec layer;
  layer.n_heads = layer.n_kv_heads = recipe.n_heads;
  layer.d_head = recipe.d_model / recipe.n_heads;
  layer.d_ff = recipe.d_ff;
  layer.position = training_position(spec, layer.d_head);
  const std::vector<bool> nope = parse_nope_layers(spec.nope_layers, recipe.n_layers);
  for (std::int64_t i = 0; i < recipe.n_layers; ++i) {
    config.layers.push_back(layer);
    if (nope[static_cast<std::size_t>(i)]) {
      config.layers.back().position = checkpoint::PositionSpec{};
      config.layers.back().position.kind = "nope";
    }
  }
  return config;
}

checkpoint::DecoderConfig planned_decoder(const TrainSpec& spec) {
  const Recipe recipe = make_recipe(spec);
  const Curriculum curriculum(spec, recipe);  // refuses tasks that cannot be trained
  const text::WordTokenizer words(spec.vocabulary, recipe.bos);
  checkpoint::DecoderConfig config = make_training_config(spec, recipe, words.vocab_size());
  std::shared_ptr<position::PositionScheme> first;
  for (std::int64_t layer = 0; layer < config.n_layers(); ++layer) {
    const auto scheme = position::make_position_scheme({&config, layer, first, nullptr});
    if (layer == 0) first = scheme;
  }
  return config;
}

void draw_uniform(torch::Tensor& values, std::int64_t fan_in, const RngKey& key) {
  RngStream rng(key);
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  float* out = values.data_ptr<float>();
  for (std::int64_t i = 0; i < values.numel(); ++i) out[i] = static_cast<float>(bound * (2 * rng.uniform_double() - 1));
}

void draw_weights(model::DecoderLm& decoder, const Recipe& recipe, const RngKey& key) {
  const at::NoGradGuard no_grad;
  const auto parameters = decoder.named_parameters();
  for (const auto& item : parameters) {
    const std::string& name = item.key();
    torch::Tensor values = item.value();
    const RngKey own = key.child(name);
    if (name == "token_embedding" || name == "position_embedding") {
      draw_normal(values, recipe.embedding_std, own);
    } else if (name.find(".position.") != std::string::npos) {
      draw_scheme_parameter(decoder, name, values, own);
    } else if (name.find("norm") != std::string::npos) {
      values.fill_(ends_with(name, ".weight") ? 1.0 : 0.0);
    } else if (values.dim() == 2) {
      draw_uniform(values, values.size(1), own);
    } else {
      const torch::Tensor* matrix =
          parameters.find(name.substr(0, name.size() - std::string_view("bias").size()) + "weight");
      FATHOM_CHECK(matrix != nullptr, "a bias without a matrix");
      draw_uniform(values, matrix->size(1), own);
    }
  }
}

bool decays_weight(const std::string& parameter_name, const torch::Tensor& parameter) {
  return parameter.dim() == 2 &&
         (parameter_name.find(".attention.") != std::string::npos || parameter_name.find(".mlp.") != std::string::npos);
}

}  // namespace fathom::train
