#include <cmath>

#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/gguf_config.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig gemma3_text_from_json(const JsonObject& file) {
  HfDecoder decoder(file, {"Gemma3ForCausalLM", "rms_norm_eps", 1e-6, "hidden_activation", "gelu_pytorch_tanh",
                           "intermediate_size", 0, true});
  decoder.config.embedding_multiplier = std::sqrt(static_cast<double>(decoder.config.d_model));
  decoder.config.attention_bias = decoder.config.attention_out_bias = decoder.flag("attention_bias", false);
  decoder.must_be("use_bidirectional_attention", false);
  decoder.json().has("query_pre_attn_scalar");  // read with the positions
  // Version 4's name of the key is the one that is read; version 5's goes with layer_types.
  if (!file.has("sliding_window_pattern")) decoder.only_pattern_of_class();
  decoder.config.post_norm = true;
  decoder.config.logit_softcap = decoder.json().real("final_logit_softcapping").value_or(0);
  if (!decoder.json().is_off("attn_logit_softcapping"))
    decoder.json().fail("attn_logit_softcapping",
                        "is set, but transformers' attention of this class does not apply it");
  decoder.config.qk_norm = QkNorm::kPerHead;
  return decoder.finish();
}

DecoderConfig gemma3_text_from_gguf(const GgufFile& file) {
  DecoderConfig config = read_gguf_decoder(file);
  config.activation = Activation::kGeluTanh;
  config.embedding_multiplier = std::sqrt(static_cast<double>(config.d_model));
  config.post_norm = true;
  config.logit_softcap = file.real("gemma3.final_logit_softcapping").value_or(0);
  return config;
}

NameMap gemma3_text_json_names(const DecoderConfig&) {
  return gemma_style_names();
}

NameMap gemma3_text_gguf_names(const DecoderConfig&) {
  return gguf_style_names();
}

}  // namespace

ArchitectureEntry families::gemma3_text_entry() {
  ArchitectureEntry entry{};
  entry.name = "gemma3_text";
  entry.gguf_name = "gemma3";
  entry.summary = "Two RoPE bases by kind of layer, norms of queries and keys, four norms a layer (Gemma 3).";
  entry.config_from_json = &gemma3_text_from_json;
  entry.config_from_gguf = &gemma3_text_from_gguf;
  entry.json_names = &gemma3_text_json_names;
  entry.gguf_names = &gemma3_text_gguf_names;
  entry.gguf_keys = {"final_logit_softcapping"};
  return entry;
}

}  // namespace fathom::checkpoint
