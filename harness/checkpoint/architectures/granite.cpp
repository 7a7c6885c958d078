#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/gguf_config.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig granite_from_json(const JsonObject& file) {
  HfDecoder decoder(file, {"GraniteForCausalLM"});
  decoder.json().has("attention_multiplier");  // read with the positions
  decoder.config.embedding_multiplier = decoder.json().positive_or("embedding_multiplier", 1);
  decoder.config.residual_multiplier = decoder.json().positive_or("residual_multiplier", 1);
  decoder.config.logit_multiplier = 1 / decoder.json().positive_or("logits_scaling", 1);
  decoder.config.mlp_bias = decoder.flag("mlp_bias", false);
  decoder.config.attention_bias = decoder.config.attention_out_bias = decoder.flag("attention_bias", false);
  return decoder.finish();
}

DecoderConfig granite_from_gguf(const GgufFile& file) {
  DecoderConfig config = read_gguf_decoder(file);
  config.embedding_multiplier = file.real("granite.embedding_scale").value_or(1);
  config.residual_multiplier = file.real("granite.residual_scale").value_or(1);
  config.logit_multiplier = 1 / file.real("granite.logit_scale").value_or(1);
  return config;
}

NameMap granite_json_names(const DecoderConfig&) {
  return llama_style_names();
}

NameMap granite_gguf_names(const DecoderConfig&) {
  return gguf_style_names();
}

}  // namespace

ArchitectureEntry families::granite_entry() {
  ArchitectureEntry entry{};
  entry.name = "granite";
  entry.gguf_name = "granite";
  entry.summary = "Llama with multipliers for embedding, attention, residual and logits (Granite 3).";
  entry.config_from_json = &granite_from_json;
  entry.config_from_gguf = &granite_from_gguf;
  entry.json_names = &granite_json_names;
  entry.gguf_names = &granite_gguf_names;
  entry.gguf_keys = {"embedding_scale", "logit_scale", "residual_scale"};
  return entry;
}

}  // namespace fathom::checkpoint
