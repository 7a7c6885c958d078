#include "harness/model/decoder_lm.h"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <string>
#include <utility>

#include "harness/core/error.h"
#include "harness/position/angle_tables.h"

namespace fathom::model {
// Not anonymous: DecoderLm::Block has members of these types, which a unity build would otherwise warn about.
inline namespace decoder_detail {

/// Parameters live in nested modules, because LibTorch allows no dots in a name; named_parameters() then gives the
/// canonical names.
class NameNode : public torch::nn::Module {
 public:
  torch::Tensor parameter(const std::string& name, torch::IntArrayRef shape, torch::Dtype dtype) {
    return register_parameter(name, torch::empty(shape, torch::TensorOptions().dtype(dtype)));
  }
};

struct LinearParameters {
  torch::Tensor weight, bias;
};

struct NormParameters {
  torch::Tensor weight, bias;
};

LinearParameters make_decoder_linear(NameNode& parent, const std::string& name,
                                     std::pair<std::int64_t, std::int64_t> out_in,
                                     std::pair<bool, torch::Dtype> bias_dtype) {
  auto node = parent.register_module(name, std::make_shared<NameNode>());
  LinearParameters out;
  out.weight = node->parameter("weight", {out_in.first, out_in.second}, bias_dtype.second);
  if (bias_dtype.first) out.bias = node->parameter("bias", {out_in.first}, torch::kFloat32);
  return out;
}

NormParameters make_decoder_norm(torch::nn::Module& parent, const std::string& name,
                                 const checkpoint::DecoderConfig& config) {
  auto node = parent.register_module(name, std::make_shared<NameNode>());
  NormParameters out;
  out.weight = node->parameter("weight", {config.d_model}, torch::kFloat32);
  if (config.norm_bias) out.bias = node->parameter("bias", {config.d_model}, torch::kFloat32);
  return out;
}

void check_layer(const checkpoint::LayerSpec& layer, std::size_t index) {
  const auto name = [index](const char* what) { return fmt::format("model: layer {}: {}", index, what); };
  if (layer.n_heads < 1 || layer.d_head < 1 || layer.d_ff < 1)
    throw ModelError(name("n_heads, d_head and d_ff must be at least 1"));
  if (layer.n_kv_heads < 1 || layer.n_heads % layer.n_kv_heads != 0) {
    throw ModelError(name("n_kv_heads must divide n_heads") +
                     fmt::format(", got {} and {}", layer.n_kv_heads, layer.n_heads));
  }
}

std::shared_ptr<position::PositionScheme> make_layer_scheme(const checkpoint::DecoderConfig& config, std::int64_t layer,
                                                            const std::shared_ptr<position::PositionScheme>& first,
                                                            const std::shared_ptr<position::AngleTables>& tables) {
  return position::make_position_scheme({&config, layer, first, tables});
}

}  // namespace decoder_detail

struct DecoderLm::Block {
  NormParameters attention_norm, mlp_norm;
  LinearParameters q, k, v, o, gate, up, down;
};

DecoderLm::DecoderLm(const checkpoint::DecoderConfig& config, torch::Dtype dtype) : config_(config) {
  if (config.layers.empty()) throw ModelError("model: the configuration has no layers");
  token_embedding_ = register_parameter(
      "token_embedding", torch::empty({config.vocab_size, config.d_model}, torch::TensorOptions().dtype(dtype)));
  auto layers = register_module("layers", std::make_shared<NameNode>());
  const auto tables = std::make_shared<position::AngleTables>();
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const checkpoint::LayerSpec& spec = config.layers[i];
    check_layer(spec, i);
    auto node = layers->register_module(std::to_string(i), std::make_shared<NameNode>());
    auto block = std::make_shared<Block>();
    block->attention_norm = make_decoder_norm(*node, "attention_norm", config);
    auto attention = node->register_module("attention", std::make_shared<NameNode>());
    const std::int64_t q_width = spec.n_heads * spec.d_head, kv_width = spec.n_kv_heads * spec.d_head;
    block->q = make_decoder_linear(*attention, "q", {q_width, config.d_model}, {config.attention_bias, dtype});
    block->k = make_decoder_linear(*attention, "k", {kv_width, config.d_model}, {config.attention_bias, dtype});
    block->v = make_decoder_linear(*attention, "v", {kv_width, config.d_model}, {config.attention_bias, dtype});
    block->o = make_decoder_linear(*attention, "o", {config.d_model, q_width}, {config.attention_out_bias, dtype});
    block->mlp_norm = make_decoder_norm(*node, "mlp_norm", config);
    auto mlp = node->register_module("mlp", std::make_shared<NameNode>());
    if (config.gated_mlp)
      block->gate = make_decoder_linear(*mlp, "gate", {spec.d_ff, config.d_model}, {config.mlp_bias, dtype});
    block->up = make_decoder_linear(*mlp, "up", {spec.d_ff, config.d_model}, {config.mlp_bias, dtype});
    block->down = make_decoder_linear(*mlp, "down", {config.d_model, spec.d_ff}, {config.mlp_bias, dtype});
    blocks_.push_back(std::move(block));
    schemes_.push_back(
        make_layer_scheme(config_, static_cast<std::int64_t>(i), i == 0 ? nullptr : schemes_.front(), tables));
    const auto own_parameters = schemes_.back()->named_parameters(false);
    if (const torch::Tensor* table = own_parameters.find("position_embedding")) {
      register_parameter("position_embedding", *table);  // the one table of the whole decoder has a name of its own
    } else {
      node->register_module("position", schemes_.back());
    }
  }
  const NormParameters final_norm = make_decoder_norm(*this, "final_norm", config);
  final_norm_weight_ = final_norm.weight;
  final_norm_bias_ = final_norm.bias;
  if (!config.tied_head) {
    auto head = register_module("head", std::make_shared<NameNode>());
    head_ = head->parameter("weight", {config.vocab_size, config.d_model}, dtype);
  }
}

torch::Tensor DecoderLm::hidden(const ForwardInput& input,
                                const std::function<void(std::int64_t, const torch::Tensor&)>& after_block) {
  FATHOM_CHECK(input.ids.dim() == 2 && input.ids.sizes() == input.positions.sizes(),
               "ids and positions must be [batch, seq]");
  const std::int64_t batch = input.ids.size(0), seq = input.ids.size(1);
  torch::Tensor x = at::embedding(token_embedding_, input.ids).to(torch::kFloat32);  // [batch, seq, d_model]
  x = schemes_.front()->embed(x, input.positions);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const Block& block = *blocks_[i];
    const checkpoint::LayerSpec& spec = config_.layers[i];
    ops::AttentionCall call;
    call.hidden = ops::norm(x, config_.norm, block.attention_norm.weight, block.attention_norm.bias, config_.norm_eps);
    call.q = ops::linear(call.hidden, block.q.weight, block.q.bias).view({batch, seq, spec.n_heads, spec.d_head});
    call.k = ops::linear(call.hidden, block.k.weight, block.k.bias).view({batch, seq, spec.n_kv_heads, spec.d_head});
    call.v = ops::linear(call.hidden, block.v.weight, block.v.bias).view({batch, seq, spec.n_kv_heads, spec.d_head});
    call.positions = input.positions;
    call.layer = static_cast<std::int64_t>(i);
    call.spec = &spec;
    call.scheme = schemes_[i].get();
    if (!input.sequences.empty()) call.sequences = &input.sequences;
    x = x + ops::linear(ops::attention(call), block.o.weight, block.o.bias);
    const torch::Tensor h = ops::norm(x, config_.norm, block.mlp_norm.weight, block.mlp_norm.bias, config_.norm_eps);
    const torch::Tensor up = ops::linear(h, block.up.weight, block.up.bias);  // [batch, seq, d_ff]
    const torch::Tensor inner =
        config_.gated_mlp ? ops::gated(ops::linear(h, block.gate.weight, block.gate.bias), up, config_.activation)
                          : ops::activate(up, config_.activation);
    x = x + ops::linear(inner, block.down.weight, block.down.bias);
    if (after_block) after_block(static_cast<std::int64_t>(i), x);
  }
  return ops::norm(x, config_.norm, final_norm_weight_, final_norm_bias_, config_.norm_eps);
}

torch::Tensor DecoderLm::logits(const torch::Tensor& rows) {
  FATHOM_CHECK(rows.dim() == 2 && rows.size(1) == config_.d_model, "logits needs rows [n, d_model]");
  return ops::linear(rows, head_.defined() ? head_ : token_embedding_, {}).to(torch::kFloat32);
}

void DecoderLm::set_position(const checkpoint::DecoderConfig& config) {
  FATHOM_CHECK(config.n_layers() == config_.n_layers() && config.d_model == config_.d_model,
               "set_position needs a config of the same model");
  config_ = config;
  std::vector<std::shared_ptr<position::PositionScheme>> schemes;
  const auto tables = std::make_shared<position::AngleTables>();
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    schemes.push_back(
        make_layer_scheme(config_, static_cast<std::int64_t>(i), i == 0 ? nullptr : schemes.front(), tables));
    const auto old_parameters = schemes_[i]->named_parameters();
    const auto new_parameters = schemes[i]->named_parameters();
    if (old_parameters.size() != new_parameters.size()) {
      throw ModelError(fmt::format("model: layer {}: position scheme '{}' needs other weights than this model holds", i,
                                   config_.layers[i].position.kind));
    }
    for (const auto& item : new_parameters) {
      const torch::Tensor* old_value = old_parameters.find(item.key());
      if (old_value == nullptr || old_value->sizes() != item.value().sizes()) {
        throw ModelError(
            fmt::format("model: layer {}: position parameter '{}' does not fit this model", i, item.key()));
      }
      torch::Tensor value = item.value();
      value.set_data(old_value->data());
    }
    // A table that the whole decoder shares is registered on the decoder itself, and keeps its storage.
    const auto modules = named_modules();
    const auto* node = modules.find(fmt::format("layers.{}", i));
    if (node != nullptr && (*node)->named_children().contains("position"))
      (*node)->replace_module("position", schemes[i]);
  }
  schemes_ = std::move(schemes);
}

}  // namespace fathom::model
