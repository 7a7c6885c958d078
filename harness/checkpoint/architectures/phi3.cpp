#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/gguf_config.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig phi3_from_json(const JsonObject& file) {
  HfDecoder decoder(file, {"Phi3ForCausalLM"});
  return decoder.finish();
}

DecoderConfig phi3_from_gguf(const GgufFile& file) {
  return read_gguf_decoder(file);
}

NameMap phi3_json_names(const DecoderConfig&) {
  NameMap names = llama_style_names();
  names.layers = with_names(names.layers, {{"attention.q", "self_attn.qkv_proj", Packing::kQkv},
                                           {"attention.k", "self_attn.qkv_proj", Packing::kQkv},
                                           {"attention.v", "self_attn.qkv_proj", Packing::kQkv},
                                           {"mlp.gate", "mlp.gate_up_proj", Packing::kGateUp},
                                           {"mlp.up", "mlp.gate_up_proj", Packing::kGateUp}});
  return names;
}

NameMap phi3_gguf_names(const DecoderConfig&) {
  NameMap names = gguf_style_names();
  names.layers =
      with_names(names.layers, {{"mlp.gate", "ffn_up", Packing::kGateUp}, {"mlp.up", "ffn_up", Packing::kGateUp}});
  return names;
}

}  // namespace

ArchitectureEntry families::phi3_entry() {
  ArchitectureEntry entry{};
  entry.name = "phi3";
  entry.gguf_name = "phi3";
  entry.summary = "Fused projections, RoPE with longrope scaling (Phi-3, Phi-3.5, Phi-4).";
  entry.config_from_json = &phi3_from_json;
  entry.config_from_gguf = &phi3_from_gguf;
  entry.json_names = &phi3_json_names;
  entry.gguf_names = &phi3_gguf_names;
  return entry;
}

}  // namespace fathom::checkpoint
