#include <cstdint>

#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/gguf_config.h"
#include "harness/checkpoint/gguf_positions.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig gpt_oss_from_json(const JsonObject& file) {
  HfDecoder decoder(file, {"GptOssForCausalLM", "rms_norm_eps", 1e-5});
  decoder.config.attention_bias = decoder.config.attention_out_bias = decoder.flag("attention_bias", true);
  MoeSpec moe;
  moe.n_experts = decoder.size("num_local_experts");
  moe.n_chosen = decoder.size_up_to("num_experts_per_tok", moe.n_experts);
  moe.d_ff = decoder.size("intermediate_size");
  moe.router = RouterKind::kTopThenSoftmax;
  moe.router_bias = moe.expert_bias = true;
  moe.clamp = decoder.json().positive_or("swiglu_limit", 7);
  moe.clamp_sharpness = decoder.json().positive_or("swiglu_alpha", 1.702);
  for (LayerSpec& layer : decoder.config.layers) {
    layer.moe = moe;
    layer.sinks = true;
  }
  return decoder.finish();
}

DecoderConfig gpt_oss_from_gguf(const GgufFile& file) {
  required_gguf_integer(file, "gpt-oss.attention.sliding_window", 1, std::int64_t{1} << 40);
  DecoderConfig config = read_gguf_decoder(file);
  MoeSpec moe;
  moe.router = RouterKind::kTopThenSoftmax;
  moe.clamp = 7;  // swiglu_limit of all published sizes; there is no key
  add_gguf_experts(file, moe, {}, config);
  for (LayerSpec& layer : config.layers) layer.sinks = true;
  return config;
}

NameMap gpt_oss_json_names(const DecoderConfig&) {
  NameMap names = llama_style_names();
  constexpr Packing kPair = Packing::kGateUpAlternating;
  names.layers =
      with_names(names.layers, {{"attention.sinks", "self_attn.sinks"},
                                {"mlp.router", "mlp.router"},
                                {"mlp.experts.#.gate.weight", "mlp.experts.gate_up_proj", kPair, true},
                                {"mlp.experts.#.gate.bias", "mlp.experts.gate_up_proj_bias", kPair},
                                {"mlp.experts.#.up.weight", "mlp.experts.gate_up_proj", kPair, true},
                                {"mlp.experts.#.up.bias", "mlp.experts.gate_up_proj_bias", kPair},
                                {"mlp.experts.#.down.weight", "mlp.experts.down_proj", Packing::kAlone, true},
                                {"mlp.experts.#.down.bias", "mlp.experts.down_proj_bias"}});
  return names;
}

NameMap gpt_oss_gguf_names(const DecoderConfig&) {
  NameMap names = gguf_style_names();
  names.layers = with_names(names.layers, {{"mlp_norm", "post_attention_norm"}});
  return names;
}

}  // namespace

ArchitectureEntry families::gpt_oss_entry() {
  ArchitectureEntry entry{};
  entry.name = "gpt_oss";
  entry.gguf_name = "gpt-oss";
  entry.summary = "Attention sinks, every other layer sliding, clamped experts with biases (gpt-oss).";
  entry.config_from_json = &gpt_oss_from_json;
  entry.config_from_gguf = &gpt_oss_from_gguf;
  entry.json_names = &gpt_oss_json_names;
  entry.gguf_names = &gpt_oss_gguf_names;
  entry.gguf_keys = gguf_expert_keys();
  return entry;
}

}  // namespace fathom::checkpoint
