#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/gguf_config.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig llama_from_json(const JsonObject& file) {
  HfDecoder decoder(file, {"LlamaForCausalLM"});
  decoder.config.attention_bias = decoder.config.attention_out_bias = decoder.flag("attention_bias", false);
  decoder.config.mlp_bias = decoder.flag("mlp_bias", false);
  return decoder.finish();
}

/// The converter permutes the rows of q and k so that pairs stand side by side; they are used as they are.
DecoderConfig llama_from_gguf(const GgufFile& file) {
  DecoderConfig config = read_gguf_decoder(file);
  MoeSpec moe;  // Mixtral goes by this name
  moe.renormalise = true;
  add_gguf_experts(file, moe, {}, config);
  return config;
}

NameMap llama_json_names(const DecoderConfig&) {
  return llama_style_names();
}

NameMap llama_gguf_names(const DecoderConfig&) {
  return gguf_style_names();
}

}  // namespace

ArchitectureEntry families::llama_entry() {
  ArchitectureEntry entry{};
  entry.name = entry.gguf_name = "llama";
  entry.summary =
      "RMSNorm, SwiGLU, grouped heads, RoPE on every layer (Llama 1-3, CodeLlama, SmolLM2, TinyLlama, Yi; as GGUF "
      "Mistral too).";
  entry.config_from_json = &llama_from_json;
  entry.config_from_gguf = &llama_from_gguf;
  entry.json_names = &llama_json_names;
  entry.gguf_names = &llama_gguf_names;
  entry.gguf_keys = gguf_expert_keys();
  return entry;
}

}  // namespace fathom::checkpoint
