#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/gguf_config.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig starcoder2_from_json(const JsonObject& file) {
  HfDecoder decoder(file, {"Starcoder2ForCausalLM", "norm_epsilon", 1e-5, "hidden_act", "gelu_pytorch_tanh",
                           "intermediate_size", 0, true});
  decoder.config.norm = NormKind::kLayer;
  decoder.config.norm_bias = true;
  decoder.config.gated_mlp = false;
  const bool bias = decoder.flag("use_bias", true);
  decoder.config.attention_bias = decoder.config.attention_out_bias = decoder.config.mlp_bias = bias;
  return decoder.finish();
}

DecoderConfig starcoder2_from_gguf(const GgufFile& file) {
  DecoderConfig config = read_gguf_decoder(file);
  config.gated_mlp = false;
  config.activation = Activation::kGeluTanh;
  return config;
}

NameMap starcoder2_json_names(const DecoderConfig&) {
  NameMap names = llama_style_names();
  names.layers = with_names(names.layers, {{"mlp.up", "mlp.c_fc"}, {"mlp.down", "mlp.c_proj"}});
  return names;
}

NameMap starcoder2_gguf_names(const DecoderConfig&) {
  return gguf_style_names();
}

}  // namespace

ArchitectureEntry families::starcoder2_entry() {
  ArchitectureEntry entry{};
  entry.name = "starcoder2";
  entry.gguf_name = "starcoder2";
  entry.summary = "LayerNorm and biases everywhere, tanh GELU without a gate, a sliding window (StarCoder 2).";
  entry.config_from_json = &starcoder2_from_json;
  entry.config_from_gguf = &starcoder2_from_gguf;
  entry.json_names = &starcoder2_json_names;
  entry.gguf_names = &starcoder2_gguf_names;
  return entry;
}

}  // namespace fathom::checkpoint
