#include <algorithm>
#include <cstdint>
#include <vector>

#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/gguf_config.h"
#include "harness/checkpoint/gguf_positions.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

/// The norm without weights comes after the rotation, in layers that rotate; before it gives the same but for a factor
/// on cos and sin.
void normalise_behind_rotation(const DecoderConfig& config, LayerSpec& layer) {
  layer.qk_norm = layer.position.rotary_dim > 0;
  layer.position.norm_after_rotation = layer.qk_norm && config.qk_norm == QkNorm::kUnit;
}

DecoderConfig llama4_text_from_json(const JsonObject& file) {
  HfDecoder decoder(file, {"Llama4ForCausalLM", "rms_norm_eps", 1e-5});
  decoder.config.attention_bias = decoder.config.attention_out_bias = decoder.flag("attention_bias", false);
  if (decoder.flag("use_qk_norm", true)) decoder.config.qk_norm = QkNorm::kUnit;
  MoeSpec moe;
  moe.n_experts = decoder.size("num_local_experts");
  moe.n_chosen = decoder.json().integer_or("num_experts_per_tok", 1, 1, moe.n_experts);
  moe.d_ff = moe.d_ff_shared = decoder.size("intermediate_size");
  moe.router = RouterKind::kSigmoidOnInput;
  const std::int64_t step = decoder.json().integer_or("interleave_moe_layer_step", 1, 1, 1 << 20);
  const auto listed = decoder.json().integer_list("moe_layers");
  const std::int64_t d_ff_dense = decoder.size("intermediate_size_mlp");
  for (std::int64_t i = 0; i < decoder.config.n_layers(); ++i) {
    LayerSpec& layer = decoder.config.layers[static_cast<std::size_t>(i)];
    layer.d_ff = d_ff_dense;
    normalise_behind_rotation(decoder.config, layer);
    const bool mixes = listed ? std::find(listed->begin(), listed->end(), i) != listed->end() : (i + 1) % step == 0;
    if (mixes) layer.moe = moe;
  }
  return decoder.finish();
}

DecoderConfig llama4_text_from_gguf(const GgufFile& file) {
  constexpr std::int64_t kExpertsWithoutNorm = 128;  // Maverick, the only one whose queries and keys have no norm
  if (file.integer("llama4.attention.sliding_window") == 0)
    file.fail("llama4.attention.sliding_window", "= 0 stands for attention without chunks, which is not supported");
  DecoderConfig config = read_gguf_decoder(file);
  if (file.integer("llama4.expert_count") != kExpertsWithoutNorm) config.qk_norm = QkNorm::kUnit;
  for (LayerSpec& layer : config.layers) normalise_behind_rotation(config, layer);
  MoeSpec moe;
  moe.router = RouterKind::kSigmoidOnInput;
  moe.d_ff_shared = required_gguf_integer(file, "llama4.expert_feed_forward_length", 1, std::int64_t{1} << 28);
  const std::int64_t step = required_gguf_integer(file, "llama4.interleave_moe_layer_step", 1, 1 << 20);
  add_gguf_experts(file, moe, {0, step}, config);
  return config;
}

NameMap llama4_text_json_names(const DecoderConfig&) {
  NameMap names = llama_style_names();
  names.layers = with_names(names.layers,
                            {{"mlp.gate", "feed_forward.gate_proj"},
                             {"mlp.up", "feed_forward.up_proj"},
                             {"mlp.down", "feed_forward.down_proj"},
                             {"mlp.router", "feed_forward.router"},
                             {"mlp.experts.#.gate.weight", "feed_forward.experts.gate_up_proj", Packing::kGateUp, true},
                             {"mlp.experts.#.up.weight", "feed_forward.experts.gate_up_proj", Packing::kGateUp, true},
                             {"mlp.experts.#.down.weight", "feed_forward.experts.down_proj", Packing::kAlone, true},
                             {"mlp.shared.gate", "feed_forward.shared_expert.gate_proj"},
                             {"mlp.shared.up", "feed_forward.shared_expert.up_proj"},
                             {"mlp.shared.down", "feed_forward.shared_expert.down_proj"}});
  return names;
}

NameMap llama4_text_gguf_names(const DecoderConfig&) {
  return gguf_style_names();
}

}  // namespace

ArchitectureEntry families::llama4_text_entry() {
  ArchitectureEntry entry{};
  entry.name = "llama4_text";
  entry.gguf_name = "llama4";
  entry.summary = "Chunked attention where it rotates, experts that scale their input, a query temperature (Llama 4).";
  entry.config_from_json = &llama4_text_from_json;
  entry.config_from_gguf = &llama4_text_from_gguf;
  entry.json_names = &llama4_text_json_names;
  entry.gguf_names = &llama4_text_gguf_names;
  entry.gguf_keys = gguf_expert_keys({"interleave_moe_layer_step"});
  return entry;
}

}  // namespace fathom::checkpoint
