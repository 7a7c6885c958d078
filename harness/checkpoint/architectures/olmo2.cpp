#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/gguf_config.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig olmo2_from_json(const JsonObject& file) {
  HfDecoder decoder(file, {"Olmo2ForCausalLM"});
  decoder.config.pre_norm = false;
  decoder.config.post_norm = true;
  decoder.config.qk_norm = QkNorm::kWhole;
  decoder.config.attention_bias = decoder.config.attention_out_bias = decoder.flag("attention_bias", false);
  return decoder.finish();
}

DecoderConfig olmo2_from_gguf(const GgufFile& file) {
  DecoderConfig config = read_gguf_decoder(file);
  config.pre_norm = false;
  config.post_norm = true;
  return config;
}

NameMap olmo2_json_names(const DecoderConfig&) {
  NameMap names = llama_style_names();
  names.layers = with_names(names.layers, {{"attention_post_norm", "post_attention_layernorm"},
                                           {"mlp_post_norm", "post_feedforward_layernorm"}});
  return names;
}

NameMap olmo2_gguf_names(const DecoderConfig&) {
  return gguf_style_names();
}

}  // namespace

ArchitectureEntry families::olmo2_entry() {
  ArchitectureEntry entry{};
  entry.name = "olmo2";
  entry.gguf_name = "olmo2";
  entry.summary = "Norms after attention and MLP only, and over the whole of queries and keys (OLMo 2).";
  entry.config_from_json = &olmo2_from_json;
  entry.config_from_gguf = &olmo2_from_gguf;
  entry.json_names = &olmo2_json_names;
  entry.gguf_names = &olmo2_gguf_names;
  return entry;
}

}  // namespace fathom::checkpoint
