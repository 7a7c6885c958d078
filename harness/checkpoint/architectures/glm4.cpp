#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/gguf_config.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig glm4_from_json(const JsonObject& file) {
  HfDecoder decoder(file, {"Glm4ForCausalLM"});
  decoder.config.attention_bias = decoder.flag("attention_bias", true);
  decoder.config.post_norm = true;
  return decoder.finish();
}

DecoderConfig glm4_from_gguf(const GgufFile& file) {
  DecoderConfig config = read_gguf_decoder(file);
  config.post_norm = true;
  return config;
}

NameMap glm4_json_names(const DecoderConfig&) {
  NameMap names = llama_style_names();
  names.layers = with_names(names.layers, {{"attention_post_norm", "post_self_attn_layernorm"},
                                           {"mlp_post_norm", "post_mlp_layernorm"},
                                           {"mlp.gate", "mlp.gate_up_proj", Packing::kGateUp},
                                           {"mlp.up", "mlp.gate_up_proj", Packing::kGateUp}});
  return names;
}

NameMap glm4_gguf_names(const DecoderConfig&) {
  NameMap names = gguf_style_names();
  names.layers =
      with_names(names.layers, {{"mlp.gate", "ffn_up", Packing::kGateUp}, {"mlp.up", "ffn_up", Packing::kGateUp}});
  return names;
}

}  // namespace

ArchitectureEntry families::glm4_entry() {
  ArchitectureEntry entry{};
  entry.name = "glm4";
  entry.gguf_name = "glm4";
  entry.summary = "GLM with norms before and after attention and MLP (GLM-4-0414).";
  entry.config_from_json = &glm4_from_json;
  entry.config_from_gguf = &glm4_from_gguf;
  entry.json_names = &glm4_json_names;
  entry.gguf_names = &glm4_gguf_names;
  return entry;
}

}  // namespace fathom::checkpoint
