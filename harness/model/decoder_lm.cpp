#include "harness/model/decoder_lm.h"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "harness/checkpoint/decoder_tensors.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/model/mixture.h"
#include "harness/position/angle_tables.h"
#include "harness/rope/t5_bucket.h"

namespace fathom::model {
namespace {

/// Parameters live in nested modules, because LibTorch allows no dots in a name; named_parameters() then gives the
/// canonical names.
class NameNode : public torch::nn::Module {
 public:
  torch::Tensor parameter(const std::string& name, torch::IntArrayRef shape, torch::Dtype dtype) {
    return register_parameter(name, torch::empty(shape, torch::TensorOptions().dtype(dtype)));
  }
};

/// Matrices and embeddings have the model's type; norms, biases and other vectors stay float32.
torch::Dtype parameter_type(const checkpoint::NamedShape& tensor, torch::Dtype dtype) {
  return tensor.shape.size() == 2 && !ends_with(tensor.name, "_norm.weight") && !ends_with(tensor.name, "_norm.bias")
             ? dtype
             : torch::kFloat32;
}

/// Registers a tensor under a name with dots, one module a part.
void register_tensor(
    torch::nn::Module& root, const checkpoint::NamedShape& tensor, torch::Dtype dtype,
    const std::function<torch::Tensor(const std::string&, torch::IntArrayRef, torch::Dtype)>& at_root) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= tensor.name.size();) {
    const std::size_t end = std::min(tensor.name.find('.', begin), tensor.name.size());
    parts.push_back(tensor.name.substr(begin, end - begin));
    begin = end + 1;
  }
  if (parts.size() == 1) {
    at_root(tensor.name, tensor.shape, parameter_type(tensor, dtype));
    return;
  }
  torch::nn::Module* node = &root;
  std::shared_ptr<NameNode> leaf;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    const auto children = node->named_children();
    const auto* child = children.find(parts[i]);
    leaf = child != nullptr ? std::dynamic_pointer_cast<NameNode>(*child)
                            : node->register_module(parts[i], std::make_shared<NameNode>());
    node = leaf.get();
  }
  leaf->parameter(parts.back(), tensor.shape, parameter_type(tensor, dtype));
}

std::shared_ptr<position::PositionScheme> make_layer_scheme(const checkpoint::DecoderConfig& config, std::int64_t layer,
                                                            const std::shared_ptr<position::PositionScheme>& first,
                                                            const std::shared_ptr<position::AngleTables>& tables) {
  return position::make_position_scheme({&config, layer, first, tables});
}

}  // namespace

DecoderLm::DecoderLm(const checkpoint::DecoderConfig& config, torch::Dtype dtype) : config_(config) {
  if (config.layers.empty()) throw ModelError("model: the configuration has no layers");
  const auto at_root = [this](const std::string& name, torch::IntArrayRef shape, torch::Dtype type) {
    return register_parameter(name, torch::empty(shape, torch::TensorOptions().dtype(type)));
  };
  for (const checkpoint::NamedShape& tensor : checkpoint::decoder_tensors(config))
    register_tensor(*this, tensor, dtype, at_root);
  const auto parameters = named_parameters();
  const auto find = [&](const std::string& name) {
    const torch::Tensor* tensor = parameters.find(name);
    return tensor == nullptr ? torch::Tensor() : *tensor;
  };
  token_embedding_ = find("token_embedding");
  embedding_norm_ = {find("embedding_norm.weight"), find("embedding_norm.bias")};
  final_norm_ = {find("final_norm.weight"), find("final_norm.bias")};
  head_ = {find("head.weight"), find("head.bias")};
  embedding_in_ = find("embedding_in.weight");
  embedding_out_ = find("embedding_out.weight");
  encoder_norm_ = {find("encoder.final_norm.weight"), find("encoder.final_norm.bias")};
  encoder_table_ = find("encoder.table");
  for (std::int64_t i = 0; config.encoder && i < config.encoder->n_layers; ++i) {
    encoder_blocks_.push_back(block_parameters(config.layers.front(), [&](const std::string& name) {
      return find(fmt::format("encoder.layers.{}.{}", i, name));
    }));
  }
  const auto tables = std::make_shared<position::AngleTables>();
  const auto modules = named_modules("", /*include_self=*/false);  // nothing owns this one yet
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const std::string prefix = fmt::format("layers.{}", i);
    blocks_.push_back(
        block_parameters(config.layers[i], [&](const std::string& name) { return find(prefix + "." + name); }));
    schemes_.push_back(
        make_layer_scheme(config_, static_cast<std::int64_t>(i), i == 0 ? nullptr : schemes_.front(), tables));
    const auto own_parameters = schemes_.back()->named_parameters(false);
    if (const torch::Tensor* table = own_parameters.find("position_embedding")) {
      register_parameter("position_embedding", *table);  // the one table of the whole decoder has a name of its own
    } else {
      std::dynamic_pointer_cast<NameNode>(modules[prefix])->register_module("position", schemes_.back());
    }
  }
}

torch::Tensor DecoderLm::normed(const torch::Tensor& x, const NormParameters& norm) const {
  return ops::norm(x, config_.norm, norm.weight, norm.bias, config_.norm_eps);
}

torch::Tensor DecoderLm::run_block(std::size_t index, const torch::Tensor& x, const ForwardInput& input) {
  const BlockParameters& block = blocks_[index];
  const checkpoint::LayerSpec& spec = config_.layers[index];
  ops::AttentionCall call;
  call.hidden = config_.pre_norm ? normed(x, block.attention_norm) : x;
  call.positions = input.positions;
  call.layer = static_cast<std::int64_t>(index);
  call.spec = &spec;
  call.scheme = schemes_[index].get();
  if (!input.sequences.empty()) call.sequences = &input.sequences;
  if (config_.residual_after_norm) return run_scaled_block(index, call);
  if (config_.norm_after_sum) return run_block_with_norms_behind(index, call);
  const auto added = [&](const torch::Tensor& to, torch::Tensor part, const NormParameters& post_norm) {
    if (config_.post_norm) part = normed(part, post_norm);
    if (config_.residual_multiplier != 1) part = part * config_.residual_multiplier;
    return to + part;
  };
  torch::Tensor middle = added(x, attend(config_, block, call), block.attention_post_norm);
  if (config_.encoder) {
    if (!input.encoded.defined())
      throw ModelError(
          "model: an encoder-decoder needs ids for its encoder; fathom logits takes them as --encoder-ids");
    middle = middle + attend_across(spec, block, normed(middle, block.cross_norm), input.encoded);
  }
  if (config_.parallel_residual) {
    const torch::Tensor h = config_.shared_norm || !config_.pre_norm ? call.hidden : normed(x, block.mlp_norm);
    return added(middle, feed_forward(config_, block, call, h), block.mlp_post_norm);
  }
  const torch::Tensor h = config_.pre_norm ? normed(middle, block.mlp_norm) : middle;
  return added(middle, feed_forward(config_, block, call, h), block.mlp_post_norm);
}

torch::Tensor DecoderLm::run_block_with_norms_behind(std::size_t index, ops::AttentionCall& call) {
  const BlockParameters& block = blocks_[index];
  const torch::Tensor middle = normed(call.hidden + attend(config_, block, call), block.attention_norm);
  return normed(middle + feed_forward(config_, block, call, middle), block.mlp_norm);
}

/// The normalised input is what goes on past attention and MLP, each in its own proportion.
torch::Tensor DecoderLm::run_scaled_block(std::size_t index, ops::AttentionCall& call) {
  const BlockParameters& block = blocks_[index];
  const checkpoint::LayerSpec& spec = config_.layers[index];
  const torch::Tensor attended = attend(config_, block, call);
  const torch::Tensor middle =
      normed(call.hidden * spec.attention_carried + attended * spec.attention_added, block.mlp_norm);
  return middle * spec.mlp_carried + feed_forward(config_, block, call, middle) * spec.mlp_added;
}

torch::Tensor DecoderLm::hidden(const ForwardInput& input,
                                const std::function<void(std::int64_t, const torch::Tensor&)>& after_block) {
  FATHOM_CHECK(input.ids.dim() == 2 && input.ids.sizes() == input.positions.sizes(),
               "ids and positions must be [batch, seq]");
  torch::Tensor x = at::embedding(token_embedding_, input.ids).to(torch::kFloat32);  // [batch, seq, d_model]
  if (embedding_in_.defined()) x = ops::linear(x, embedding_in_, {});
  if (config_.embedding_multiplier != 1) x = x * config_.embedding_multiplier;
  if (config_.embedding_norm) x = normed(x, embedding_norm_);
  x = schemes_.front()->embed(x, input.positions);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    x = run_block(i, x, input);
    if (after_block) after_block(static_cast<std::int64_t>(i), x);
  }
  return config_.final_norm ? normed(x, final_norm_) : x;
}

torch::Tensor DecoderLm::encode(const torch::Tensor& ids) {
  if (!config_.encoder) throw ModelError("model: there is no encoder in this model; leave its ids out");
  const rope::T5Buckets buckets{config_.encoder->n_buckets, config_.encoder->max_distance,
                                rope::BucketDirection::kBidirectional};
  const std::int64_t n = ids.size(1);
  torch::Tensor bucket_of = at::empty({n, n}, torch::kInt64);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j)
      bucket_of.data_ptr<std::int64_t>()[i * n + j] = rope::t5_bucket(j - i, buckets);
  }
  const torch::Tensor bias = at::embedding(encoder_table_, bucket_of).permute({2, 0, 1}).unsqueeze(0).contiguous();
  torch::Tensor x = at::embedding(token_embedding_, ids).to(torch::kFloat32);
  for (const BlockParameters& block : encoder_blocks_) {
    x = x + attend_everywhere(config_.layers.front(), block, normed(x, block.attention_norm), bias);
    x = x + mlp(config_.gated_mlp, config_.activation, block.mlp, normed(x, block.mlp_norm));
  }
  return normed(x, encoder_norm_);
}

torch::Tensor DecoderLm::logits(const torch::Tensor& rows) {
  FATHOM_CHECK(rows.dim() == 2 && rows.size(1) == config_.d_model, "logits needs rows [n, d_model]");
  const torch::Tensor& matrix = head_.weight.defined() ? head_.weight : token_embedding_;
  const torch::Tensor& narrowed = embedding_out_.defined() ? ops::linear(rows, embedding_out_, {}) : rows;
  torch::Tensor out = ops::linear(narrowed, matrix, head_.bias).to(torch::kFloat32);
  if (config_.logit_multiplier != 1) out = out * config_.logit_multiplier;
  if (config_.logit_softcap > 0) out = (out / config_.logit_softcap).tanh() * config_.logit_softcap;
  return out;
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
