#include <cmath>

#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/gguf_config.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig gemma2_from_json(const JsonObject& file) {
  HfDecoder decoder(file, {"Gemma2ForCausalLM", "rms_norm_eps", 1e-6, "hidden_activation", "gelu_pytorch_tanh",
                           "intermediate_size", 0, true});
  decoder.config.embedding_multiplier = std::sqrt(static_cast<double>(decoder.config.d_model));
  decoder.config.attention_bias = decoder.config.attention_out_bias = decoder.flag("attention_bias", false);
  decoder.must_be("use_bidirectional_attention", false);
  decoder.json().has("query_pre_attn_scalar");  // read with the positions
  decoder.only_pattern_of_class();
  decoder.config.post_norm = true;
  decoder.config.logit_softcap = decoder.json().real("final_logit_softcapping").value_or(0);
  const double softcap = decoder.json().real("attn_logit_softcapping").value_or(0);
  for (LayerSpec& layer : decoder.config.layers) layer.softcap = softcap;
  return decoder.finish();
}

DecoderConfig gemma2_from_gguf(const GgufFile& file) {
  DecoderConfig config = read_gguf_decoder(file);
  config.activation = Activation::kGeluTanh;
  config.embedding_multiplier = std::sqrt(static_cast<double>(config.d_model));
  config.post_norm = true;
  config.logit_softcap = file.real("gemma2.final_logit_softcapping").value_or(30);
  const double softcap = file.real("gemma2.attn_logit_softcapping").value_or(50);
  for (LayerSpec& layer : config.layers) layer.softcap = softcap;
  return config;
}

NameMap gemma2_json_names(const DecoderConfig&) {
  return gemma_style_names();
}

NameMap gemma2_gguf_names(const DecoderConfig&) {
  return gguf_style_names();
}

}  // namespace

ArchitectureEntry families::gemma2_entry() {
  ArchitectureEntry entry{};
  entry.name = "gemma2";
  entry.gguf_name = "gemma2";
  entry.summary = "Soft-caps on scores and logits, four norms a layer, every other layer sliding (Gemma 2).";
  entry.config_from_json = &gemma2_from_json;
  entry.config_from_gguf = &gemma2_from_gguf;
  entry.json_names = &gemma2_json_names;
  entry.gguf_names = &gemma2_gguf_names;
  entry.gguf_keys = {"attn_logit_softcapping", "final_logit_softcapping"};
  return entry;
}

}  // namespace fathom::checkpoint
