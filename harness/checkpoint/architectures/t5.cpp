#include <cmath>
#include <string>
#include <vector>

#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig t5_from_json(const JsonObject& file) {
  HfDecoder decoder(
      file, {"T5ForConditionalGeneration", "layer_norm_epsilon", 1e-6, "dense_act_fn", "relu", "d_ff", 0, true});
  const JsonObject& json = decoder.json();
  decoder.must_be("is_encoder_decoder", true);
  const std::string kind = json.text("feed_forward_proj").value_or("relu");
  const bool is_gated = kind.compare(0, 6, "gated-") == 0;
  // What older versions derived from feed_forward_proj and wrote beside it counts first, as in transformers.
  decoder.config.gated_mlp = decoder.flag("is_gated_act", is_gated);
  if (!json.has("dense_act_fn")) {
    decoder.config.activation = kind == "gated-gelu"
                                    ? Activation::kGeluTanh  // transformers takes gelu_new for this one
                                    : parse_hf_activation(json, "feed_forward_proj", is_gated ? kind.substr(6) : kind);
  }
  if (decoder.flag("scale_decoder_outputs", decoder.config.tied_head))
    decoder.config.logit_multiplier = 1 / std::sqrt(static_cast<double>(decoder.config.d_model));
  decoder.config.tied_head = true;  // the class always ties; a head of the file's own is found when it is opened
  EncoderSpec encoder;
  encoder.n_layers = decoder.config.n_layers();
  encoder.n_buckets = decoder.size("relative_attention_num_buckets");
  encoder.max_distance = decoder.size("relative_attention_max_distance");
  decoder.config.encoder = encoder;
  const LayerSpec layer = decoder.config.layers.front();
  decoder.config.layers.resize(
      static_cast<std::size_t>(json.integer_or("num_decoder_layers", encoder.n_layers, 1, 4096)), layer);
  return decoder.finish();
}

NameMap t5_json_names(const DecoderConfig& config) {
  const std::vector<StoredName> attention = {{"attention_norm", "layer.0.layer_norm"},
                                             {"attention.q", "layer.0.SelfAttention.q"},
                                             {"attention.k", "layer.0.SelfAttention.k"},
                                             {"attention.v", "layer.0.SelfAttention.v"},
                                             {"attention.o", "layer.0.SelfAttention.o"}};
  const char* up_in_decoder = config.gated_mlp ? "layer.2.DenseReluDense.wi_1" : "layer.2.DenseReluDense.wi";
  const char* up_in_encoder = config.gated_mlp ? "layer.1.DenseReluDense.wi_1" : "layer.1.DenseReluDense.wi";
  NameMap names;
  names.layer = "decoder.block.";
  names.layers = with_names(attention, {{"position.table", "layer.0.SelfAttention.relative_attention_bias.weight"},
                                        {"cross_norm", "layer.1.layer_norm"},
                                        {"cross.q", "layer.1.EncDecAttention.q"},
                                        {"cross.k", "layer.1.EncDecAttention.k"},
                                        {"cross.v", "layer.1.EncDecAttention.v"},
                                        {"cross.o", "layer.1.EncDecAttention.o"},
                                        {"mlp_norm", "layer.2.layer_norm"},
                                        {"mlp.gate", "layer.2.DenseReluDense.wi_0"},
                                        {"mlp.up", up_in_decoder},
                                        {"mlp.down", "layer.2.DenseReluDense.wo"}});
  names.encoder_layer = "encoder.block.";
  names.encoder_layers = with_names(attention, {{"mlp_norm", "layer.1.layer_norm"},
                                                {"mlp.gate", "layer.1.DenseReluDense.wi_0"},
                                                {"mlp.up", up_in_encoder},
                                                {"mlp.down", "layer.1.DenseReluDense.wo"}});
  names.whole = {{"token_embedding", "shared.weight"},
                 {"final_norm", "decoder.final_layer_norm"},
                 {"head", "lm_head"},
                 {"encoder.final_norm", "encoder.final_layer_norm"},
                 {"encoder.table", "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"}};
  return names;
}

}  // namespace

ArchitectureEntry families::t5_entry() {
  ArchitectureEntry entry{};
  entry.name = "t5";
  entry.summary = "Encoder and decoder with a bias by buckets of distances (T5).";
  entry.config_from_json = &t5_from_json;
  entry.json_names = &t5_json_names;
  return entry;
}

}  // namespace fathom::checkpoint
