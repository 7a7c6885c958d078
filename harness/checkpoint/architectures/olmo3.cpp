#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig olmo3_from_json(const JsonObject& file) {
  HfDecoder decoder(file, {"Olmo3ForCausalLM"});
  decoder.only_pattern_of_class();
  decoder.config.pre_norm = false;
  decoder.config.post_norm = true;
  decoder.config.qk_norm = QkNorm::kWhole;
  decoder.config.attention_bias = decoder.config.attention_out_bias = decoder.flag("attention_bias", false);
  return decoder.finish();
}

NameMap olmo3_json_names(const DecoderConfig&) {
  NameMap names = llama_style_names();
  names.layers = with_names(names.layers, {{"attention_post_norm", "post_attention_layernorm"},
                                           {"mlp_post_norm", "post_feedforward_layernorm"}});
  return names;
}

}  // namespace

ArchitectureEntry families::olmo3_entry() {
  ArchitectureEntry entry{};
  entry.name = "olmo3";
  entry.summary = "OLMo 2 with sliding layers (OLMo 3).";
  entry.config_from_json = &olmo3_from_json;
  entry.json_names = &olmo3_json_names;
  return entry;
}

}  // namespace fathom::checkpoint
