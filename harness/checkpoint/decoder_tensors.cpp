#include "harness/checkpoint/decoder_tensors.h"

#include <fmt/format.h>

#include <utility>

#include "harness/core/error.h"

namespace fathom::checkpoint {
namespace {

enum class HasBias { kNo, kYes };

HasBias bias_if(bool present) {
  return present ? HasBias::kYes : HasBias::kNo;
}

std::optional<std::int64_t> integer_option(const PositionSpec& position, const std::string& name) {
  const auto found = position.options.find(name);
  if (found == position.options.end()) return std::nullopt;
  return std::stoll(found->second);
}

class TensorList {
 public:
  explicit TensorList(const DecoderConfig& config) : config_(config) {}

  void linear(const std::string& name, std::int64_t n_out, std::int64_t n_in, HasBias bias = HasBias::kNo) {
    list_.push_back({name + ".weight", {n_out, n_in}});
    if (bias == HasBias::kYes) list_.push_back({name + ".bias", {n_out}});
  }
  void norm(const std::string& name, std::vector<std::int64_t> shape) {
    list_.push_back({name + ".weight", shape});
    if (config_.norm_bias) list_.push_back({name + ".bias", std::move(shape)});
  }
  /// A norm that never has a bias.
  void plain_norm(const std::string& name, std::int64_t width) { list_.push_back({name + ".weight", {width}}); }
  void tensor(const std::string& name, std::vector<std::int64_t> shape) { list_.push_back({name, std::move(shape)}); }

  std::vector<NamedShape> take() { return std::move(list_); }

 private:
  const DecoderConfig& config_;
  std::vector<NamedShape> list_;
};

void check_tensor_sizes(const LayerSpec& layer, std::int64_t index) {
  const auto name = [index](const char* what) { return fmt::format("model: layer {}: {}", index, what); };
  if (layer.n_heads < 1 || layer.d_head < 1 || (layer.d_ff < 1 && !layer.moe))
    throw ModelError(name("n_heads, d_head and d_ff must be at least 1"));
  if (layer.n_kv_heads < 1 || layer.n_heads % layer.n_kv_heads != 0) {
    throw ModelError(name("n_kv_heads must divide n_heads") +
                     fmt::format(", got {} and {}", layer.n_kv_heads, layer.n_heads));
  }
  if (layer.latent && (layer.n_kv_heads != layer.n_heads || layer.latent->d_rope > layer.d_head ||
                       layer.latent->d_value > layer.d_head)) {
    throw ModelError(name("a latent attention has as many key as query heads, and no wider values than keys"));
  }
}

void add_qk_norm(const DecoderConfig& config, const LayerSpec& layer, TensorList& list) {
  if (!layer.qk_norm) return;
  switch (config.qk_norm) {
    case QkNorm::kNone:
    case QkNorm::kUnit:
      return;
    case QkNorm::kPerHead:
      list.norm("attention.q_norm", {layer.d_head});
      list.norm("attention.k_norm", {layer.d_head});
      return;
    case QkNorm::kPerHeadOwn:
      list.tensor("attention.q_norm.weight", {layer.n_heads, layer.d_head});
      list.tensor("attention.k_norm.weight", {layer.n_kv_heads, layer.d_head});
      return;
    case QkNorm::kWhole:
      list.norm("attention.q_norm", {layer.n_heads * layer.d_head});
      list.norm("attention.k_norm", {layer.n_kv_heads * layer.d_head});
      return;
  }
}

void add_latent_attention(const DecoderConfig& config, const LayerSpec& layer, TensorList& list) {
  const LatentSpec& latent = *layer.latent;
  const std::int64_t q_width = layer.n_heads * layer.d_head;
  const HasBias bias = bias_if(config.attention_bias);
  if (latent.q_rank > 0) {
    list.linear("attention.q_a", latent.q_rank, config.d_model, bias);
    list.plain_norm("attention.q_a_norm", latent.q_rank);
    list.linear("attention.q_b", q_width, latent.q_rank);
  } else {
    list.linear("attention.q", q_width, config.d_model);
  }
  list.linear("attention.kv_a", latent.kv_rank + latent.d_rope, config.d_model, bias);
  list.plain_norm("attention.kv_a_norm", latent.kv_rank);
  list.linear("attention.kv_b", layer.n_heads * (layer.d_head - latent.d_rope + latent.d_value), latent.kv_rank);
  list.linear("attention.o", config.d_model, layer.n_heads * latent.d_value, bias_if(config.attention_out_bias));
}

void add_linear_attention(const DecoderConfig& config, const LayerSpec& layer, TensorList& list) {
  list.plain_norm("attention.out_norm", layer.n_heads * layer.d_head);
  list.linear("attention.out_gate", layer.n_heads * layer.d_head, config.d_model);
  if (layer.linear->kind != LinearKind::kMlstm) return;
  list.linear("attention.input_gate", layer.n_heads, config.d_model, HasBias::kYes);
  list.linear("attention.forget_gate", layer.n_heads, config.d_model, HasBias::kYes);
}

void add_attention(const DecoderConfig& config, const LayerSpec& layer, TensorList& list) {
  if (layer.latent) return add_latent_attention(config, layer, list);
  const std::int64_t q_width = layer.n_heads * layer.d_head, kv_width = layer.n_kv_heads * layer.d_head;
  const std::int64_t d_key = layer.linear && layer.linear->d_key > 0 ? layer.linear->d_key : layer.d_head;
  const HasBias bias = bias_if(config.attention_bias);
  list.linear("attention.q", layer.n_heads * d_key, config.d_model, bias);
  list.linear("attention.k", layer.n_kv_heads * d_key, config.d_model, bias);
  list.linear("attention.v", kv_width, config.d_model, bias);
  list.linear("attention.o", config.d_model, q_width, bias_if(config.attention_out_bias));
  if (layer.linear) return add_linear_attention(config, layer, list);
  add_qk_norm(config, layer, list);
  if (layer.sinks) list.tensor("attention.sinks", {layer.n_heads});
  if (layer.conv_width == 0) return;
  list.tensor("attention.k_conv", {kv_width, 1, layer.conv_width});
  list.tensor("attention.v_conv", {kv_width, 1, layer.conv_width});
}

void add_cross_attention(const DecoderConfig& config, const LayerSpec& layer, TensorList& list) {
  const std::int64_t width = layer.n_heads * layer.d_head;
  list.norm("cross_norm", {config.d_model});
  for (const char* name : {"cross.q", "cross.k", "cross.v"}) list.linear(name, width, config.d_model);
  list.linear("cross.o", config.d_model, width);
}

void add_mlp(const std::string& name, const DecoderConfig& config, std::int64_t d_ff, HasBias bias, TensorList& list) {
  if (config.gated_mlp) list.linear(name + ".gate", d_ff, config.d_model, bias);
  list.linear(name + ".up", d_ff, config.d_model, bias);
  list.linear(name + ".down", config.d_model, d_ff, bias);
}

void add_experts(const DecoderConfig& config, const MoeSpec& moe, TensorList& list) {
  list.linear("mlp.router", moe.n_experts + moe.n_always, config.d_model, bias_if(moe.router_bias));
  if (moe.router_correction) list.tensor("mlp.router_correction", {moe.n_experts});
  for (std::int64_t e = 0; e < moe.n_experts; ++e)
    add_mlp(fmt::format("mlp.experts.{}", e), config, moe.d_ff, bias_if(moe.expert_bias), list);
  for (std::int64_t e = 0; e < moe.n_always; ++e)
    add_mlp(fmt::format("mlp.always.{}", e), config, moe.d_ff, bias_if(moe.expert_bias), list);
  if (moe.d_ff_shared > 0) add_mlp("mlp.shared", config, moe.d_ff_shared, HasBias::kNo, list);
  if (moe.shared_gate) list.linear("mlp.shared_gate", 1, config.d_model);
}

}  // namespace

std::vector<NamedShape> layer_tensors(const DecoderConfig& config, std::int64_t layer) {
  const LayerSpec& spec = config.layers.at(static_cast<std::size_t>(layer));
  check_tensor_sizes(spec, layer);
  TensorList list(config);
  const bool has_norms = config.pre_norm || config.norm_after_sum;
  if (has_norms) list.norm("attention_norm", {config.d_model});
  add_attention(config, spec, list);
  if (config.post_norm) list.norm("attention_post_norm", {config.d_model});
  if (config.encoder) add_cross_attention(config, spec, list);
  if (has_norms && !config.shared_norm) list.norm("mlp_norm", {config.d_model});
  if (spec.moe) {
    add_experts(config, *spec.moe, list);
  } else {
    add_mlp("mlp", config, spec.d_ff, bias_if(config.mlp_bias), list);
  }
  if (config.mlp_scale) list.tensor("mlp.scale", {1});
  if (config.post_norm) list.norm("mlp_post_norm", {config.d_model});
  if (spec.conv_width > 0) {
    list.tensor("attention_conv", {config.d_model, 1, spec.conv_width});
    list.tensor("mlp_conv", {config.d_model, 1, spec.conv_width});
  }
  return list.take();
}

std::vector<NamedShape> encoder_layer_tensors(const DecoderConfig& config) {
  DecoderConfig encoder = config;
  encoder.encoder.reset();
  return layer_tensors(encoder, 0);
}

std::vector<NamedShape> decoder_tensors(const DecoderConfig& config) {
  TensorList list(config);
  const std::int64_t d_embedding = config.d_embedding > 0 ? config.d_embedding : config.d_model;
  list.tensor("token_embedding", {config.vocab_size, d_embedding});
  if (config.d_embedding > 0) {
    list.linear("embedding_in", config.d_model, d_embedding);
    list.linear("embedding_out", d_embedding, config.d_model);
  }
  if (config.embedding_norm) list.norm("embedding_norm", {config.d_model});
  for (std::int64_t layer = 0; layer < config.n_layers(); ++layer) {
    for (NamedShape& tensor : layer_tensors(config, layer))
      list.tensor(fmt::format("layers.{}.{}", layer, tensor.name), std::move(tensor.shape));
  }
  if (config.encoder) {
    for (std::int64_t layer = 0; layer < config.encoder->n_layers; ++layer) {
      for (NamedShape& tensor : encoder_layer_tensors(config))
        list.tensor(fmt::format("encoder.layers.{}.{}", layer, tensor.name), std::move(tensor.shape));
    }
    list.norm("encoder.final_norm", {config.d_model});
    list.tensor("encoder.table", {config.encoder->n_buckets, config.layers.front().n_heads});
  }
  if (config.final_norm) list.norm("final_norm", {config.d_model});
  if (!config.tied_head) list.tensor("head.weight", {config.vocab_size, d_embedding});
  if (config.head_bias) list.tensor("head.bias", {config.vocab_size});
  return list.take();
}

std::optional<NamedShape> position_table(const DecoderConfig& config) {
  const PositionSpec& position = config.layers.front().position;
  if (position.kind != "learned") return std::nullopt;
  const std::int64_t positions =
      integer_option(position, "positions").value_or(config.trained_context.value_or(config.claimed_context));
  return NamedShape{"position_embedding", {positions + integer_option(position, "offset").value_or(0), config.d_model}};
}

std::vector<NamedShape> layer_position_tensors(const DecoderConfig& config, std::int64_t layer) {
  const LayerSpec& spec = config.layers.at(static_cast<std::size_t>(layer));
  if (spec.position.kind == "t5") {
    const auto shared = spec.position.options.find("shared");
    if (layer > 0 && shared != spec.position.options.end() && shared->second == "on") return {};
    return {{"position.table", {integer_option(spec.position, "buckets").value(), spec.n_heads}}};
  }
  if (spec.position.kind != "inkling") return {};
  const std::int64_t d_rel = integer_option(spec.position, "d_rel").value();
  const std::int64_t extent = integer_option(spec.position, "extent").value();
  return {{"position.state", {spec.n_heads * d_rel, config.d_model}}, {"position.curves", {d_rel, extent}}};
}

}  // namespace fathom::checkpoint
