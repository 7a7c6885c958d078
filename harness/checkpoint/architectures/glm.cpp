#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig glm_from_json(const JsonObject& file) {
  HfDecoder decoder(file, {"GlmForCausalLM"});
  decoder.config.attention_bias = decoder.flag("attention_bias", true);
  return decoder.finish();
}

NameMap glm_json_names(const DecoderConfig&) {
  NameMap names = llama_style_names();
  names.layers = with_names(names.layers, {{"mlp.gate", "mlp.gate_up_proj", Packing::kGateUp},
                                           {"mlp.up", "mlp.gate_up_proj", Packing::kGateUp}});
  return names;
}

}  // namespace

ArchitectureEntry families::glm_entry() {
  ArchitectureEntry entry{};
  entry.name = "glm";
  entry.summary = "Interleaved partial RoPE, biases on queries, keys and values (GLM-4-9B).";
  entry.config_from_json = &glm_from_json;
  entry.json_names = &glm_json_names;
  return entry;
}

}  // namespace fathom::checkpoint
