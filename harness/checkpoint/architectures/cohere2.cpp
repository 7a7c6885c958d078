#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/gguf_config.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig cohere2_from_json(const JsonObject& file) {
  HfDecoder decoder(file,
                    {"Cohere2ForCausalLM", "layer_norm_eps", 1e-5, "hidden_act", "silu", "intermediate_size", 0, true});
  decoder.config.norm = NormKind::kLayer;
  decoder.config.parallel_residual = decoder.config.shared_norm = true;
  decoder.config.logit_multiplier = decoder.json().real("logit_scale").value_or(0.0625);
  decoder.config.attention_bias = decoder.config.attention_out_bias = decoder.flag("attention_bias", false);
  return decoder.finish();
}

DecoderConfig cohere2_from_gguf(const GgufFile& file) {
  DecoderConfig config = read_gguf_decoder(file);
  config.norm = NormKind::kLayer;
  config.parallel_residual = config.shared_norm = true;
  config.logit_multiplier = required_gguf_positive(file, "cohere2.logit_scale");
  return config;
}

NameMap cohere2_json_names(const DecoderConfig&) {
  return llama_style_names();
}

NameMap cohere2_gguf_names(const DecoderConfig&) {
  return gguf_style_names();
}

}  // namespace

ArchitectureEntry families::cohere2_entry() {
  ArchitectureEntry entry{};
  entry.name = "cohere2";
  entry.gguf_name = "cohere2";
  entry.summary = "Cohere with RoPE on its sliding layers only (Command R7B).";
  entry.config_from_json = &cohere2_from_json;
  entry.config_from_gguf = &cohere2_from_gguf;
  entry.json_names = &cohere2_json_names;
  entry.gguf_names = &cohere2_gguf_names;
  entry.gguf_keys = {"logit_scale"};
  return entry;
}

}  // namespace fathom::checkpoint
