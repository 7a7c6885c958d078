#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig deepseek_v2_from_json(const JsonObject& file) {
  HfDecoder decoder(file, {"DeepseekV2ForCausalLM"});
  decoder.config.attention_bias = decoder.config.attention_out_bias = decoder.flag("attention_bias", false);
  decoder.config.qk_norm = QkNorm::kNone;
  LatentSpec latent;
  latent.q_rank = decoder.json().integer_or("q_lora_rank", 0, 0, 1 << 20);
  latent.kv_rank = decoder.size("kv_lora_rank");
  latent.d_rope = decoder.size("qk_rope_head_dim");
  latent.d_value = decoder.size("v_head_dim");
  MoeSpec moe;
  moe.n_experts = decoder.size("n_routed_experts");
  moe.n_chosen = decoder.size_up_to("num_experts_per_tok", moe.n_experts);
  moe.d_ff = decoder.size("moe_intermediate_size");
  moe.d_ff_shared = moe.d_ff * decoder.json().integer_or("n_shared_experts", 1, 0, 1 << 10);
  moe.scale = decoder.json().positive_or("routed_scaling_factor", 1);
  if (decoder.json().integer_or("moe_layer_freq", 1, 1, 1 << 20) != 1)
    decoder.json().fail("moe_layer_freq", "must be 1, the only one that transformers knows");
  decoder.must_be("norm_topk_prob", false);
  decoder.must_be("mlp_bias", false);
  const std::string method = decoder.json().text("topk_method").value_or("greedy");
  if (method == "group_limited_greedy") {
    moe.n_groups = decoder.size_up_to("n_group", moe.n_experts);
    moe.n_chosen_groups = decoder.size_up_to("topk_group", moe.n_groups);
  } else if (method != "greedy") {
    decoder.json().fail("topk_method", "= '" + method + "' is not supported; supported: greedy, group_limited_greedy");
  }
  const std::int64_t n_dense = decoder.json().integer_or("first_k_dense_replace", 0, 0, 1 << 20);
  for (std::int64_t i = 0; i < decoder.config.n_layers(); ++i) {
    LayerSpec& layer = decoder.config.layers[static_cast<std::size_t>(i)];
    layer.latent = latent;
    if (i >= n_dense) layer.moe = moe;
  }
  return decoder.finish();
}

NameMap deepseek_v2_json_names(const DecoderConfig&) {
  return latent_expert_names();
}

}  // namespace

ArchitectureEntry families::deepseek_v2_entry() {
  ArchitectureEntry entry{};
  entry.name = "deepseek_v2";
  entry.summary = "Keys and values from a latent vector, experts in groups, YaRN (DeepSeek-V2).";
  entry.config_from_json = &deepseek_v2_from_json;
  entry.json_names = &deepseek_v2_json_names;
  return entry;
}

}  // namespace fathom::checkpoint
