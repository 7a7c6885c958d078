#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/gguf_config.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig smollm3_from_json(const JsonObject& file) {
  HfDecoder decoder(file,
                    {"SmolLM3ForCausalLM", "rms_norm_eps", 1e-6, "hidden_act", "silu", "intermediate_size", 0, true});
  decoder.config.attention_bias = decoder.config.attention_out_bias = decoder.flag("attention_bias", false);
  decoder.config.mlp_bias = decoder.flag("mlp_bias", false);
  return decoder.finish();
}

DecoderConfig smollm3_from_gguf(const GgufFile& file) {
  return read_gguf_decoder(file);
}

NameMap smollm3_json_names(const DecoderConfig&) {
  return llama_style_names();
}

NameMap smollm3_gguf_names(const DecoderConfig&) {
  return gguf_style_names();
}

}  // namespace

ArchitectureEntry families::smollm3_entry() {
  ArchitectureEntry entry{};
  entry.name = "smollm3";
  entry.gguf_name = "smollm3";
  entry.summary = "Llama with layers that do not rotate (SmolLM3).";
  entry.config_from_json = &smollm3_from_json;
  entry.config_from_gguf = &smollm3_from_gguf;
  entry.json_names = &smollm3_json_names;
  entry.gguf_names = &smollm3_gguf_names;
  return entry;
}

}  // namespace fathom::checkpoint
