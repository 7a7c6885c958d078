#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/gguf_config.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig phi_from_json(const JsonObject& file) {
  HfDecoder decoder(
      file, {"PhiForCausalLM", "layer_norm_eps", 1e-5, "hidden_act", "gelu_new", "intermediate_size", 0, false});
  decoder.config.norm = NormKind::kLayer;
  decoder.config.norm_bias = true;
  decoder.config.gated_mlp = false;
  decoder.config.attention_bias = decoder.config.attention_out_bias = decoder.config.mlp_bias = true;
  decoder.config.head_bias = true;
  decoder.config.parallel_residual = decoder.config.shared_norm = true;
  if (decoder.flag("qk_layernorm", false)) decoder.config.qk_norm = QkNorm::kPerHead;
  return decoder.finish();
}

DecoderConfig phi_from_gguf(const GgufFile& file) {
  DecoderConfig config = read_gguf_decoder(file);
  config.gated_mlp = false;
  config.activation = Activation::kGeluTanh;
  config.parallel_residual = config.shared_norm = true;
  return config;
}

NameMap phi_json_names(const DecoderConfig&) {
  NameMap names = llama_style_names();
  names.layers = with_names(names.layers, {{"attention.o", "self_attn.dense"},
                                           {"attention.q_norm", "self_attn.q_layernorm"},
                                           {"attention.k_norm", "self_attn.k_layernorm"},
                                           {"mlp.up", "mlp.fc1"},
                                           {"mlp.down", "mlp.fc2"}});
  names.whole = with_names(names.whole, {{"final_norm", "model.final_layernorm"}});
  return names;
}

NameMap phi_gguf_names(const DecoderConfig&) {
  return gguf_style_names();
}

}  // namespace

ArchitectureEntry families::phi_entry() {
  ArchitectureEntry entry{};
  entry.name = "phi";
  entry.gguf_name = "phi2";
  entry.summary = "Attention and MLP side by side on one norm, partial RoPE, biases, a head with bias (Phi-1, Phi-2).";
  entry.config_from_json = &phi_from_json;
  entry.config_from_gguf = &phi_from_gguf;
  entry.json_names = &phi_json_names;
  entry.gguf_names = &phi_gguf_names;
  return entry;
}

}  // namespace fathom::checkpoint
