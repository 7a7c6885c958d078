#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/gguf_config.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig cohere_from_json(const JsonObject& file) {
  HfDecoder decoder(file,
                    {"CohereForCausalLM", "layer_norm_eps", 1e-5, "hidden_act", "silu", "intermediate_size", 0, true});
  decoder.config.norm = NormKind::kLayer;
  decoder.config.parallel_residual = decoder.config.shared_norm = true;
  decoder.config.logit_multiplier = decoder.json().real("logit_scale").value_or(0.0625);
  decoder.config.attention_bias = decoder.config.attention_out_bias = decoder.flag("attention_bias", false);
  if (decoder.flag("use_qk_norm", false)) decoder.config.qk_norm = QkNorm::kPerHeadOwn;
  return decoder.finish();
}

DecoderConfig cohere_from_gguf(const GgufFile& file) {
  DecoderConfig config = read_gguf_decoder(file);
  config.norm = NormKind::kLayer;
  config.parallel_residual = config.shared_norm = true;
  config.logit_multiplier = required_gguf_positive(file, "command-r.logit_scale");
  return config;
}

NameMap cohere_json_names(const DecoderConfig&) {
  return llama_style_names();
}

NameMap cohere_gguf_names(const DecoderConfig&) {
  return gguf_style_names();
}

}  // namespace

ArchitectureEntry families::cohere_entry() {
  ArchitectureEntry entry{};
  entry.name = "cohere";
  entry.gguf_name = "command-r";
  entry.summary = "Attention and MLP side by side on one LayerNorm, interleaved RoPE, scaled logits (Command R).";
  entry.config_from_json = &cohere_from_json;
  entry.config_from_gguf = &cohere_from_gguf;
  entry.json_names = &cohere_json_names;
  entry.gguf_names = &cohere_gguf_names;
  entry.gguf_keys = {"logit_scale"};
  return entry;
}

}  // namespace fathom::checkpoint
