#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig deepseek_v3_from_json(const JsonObject& file) {
  HfDecoder decoder(file, {"DeepseekV3ForCausalLM", "rms_norm_eps", 1e-6});
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
  moe.scale = decoder.json().positive_or("routed_scaling_factor", 2.5);
  if (decoder.json().integer_or("moe_layer_freq", 1, 1, 1 << 20) != 1)
    decoder.json().fail("moe_layer_freq", "must be 1, the only one that transformers knows");
  if (const auto method = decoder.json().text("topk_method"); method && *method != "noaux_tc")
    decoder.json().fail("topk_method", "= '" + *method + "' is not supported; only noaux_tc is");
  if (const auto scoring = decoder.json().text("scoring_func"); scoring && *scoring != "sigmoid")
    decoder.json().fail("scoring_func", "= '" + *scoring + "' is not supported; only sigmoid is");
  moe.router = RouterKind::kSigmoid;
  moe.router_correction = true;
  moe.renormalise = decoder.flag("norm_topk_prob", true);
  moe.n_groups = decoder.json().integer_or("n_group", 8, 1, moe.n_experts);
  moe.n_chosen_groups = decoder.json().integer_or("topk_group", 4, 1, moe.n_groups);
  moe.group_best = 2;
  const std::int64_t n_dense = decoder.json().integer_or("first_k_dense_replace", 3, 0, 1 << 20);
  for (std::int64_t i = 0; i < decoder.config.n_layers(); ++i) {
    LayerSpec& layer = decoder.config.layers[static_cast<std::size_t>(i)];
    layer.latent = latent;
    if (i >= n_dense) layer.moe = moe;
  }
  return decoder.finish();
}

NameMap deepseek_v3_json_names(const DecoderConfig&) {
  return latent_expert_names();
}

}  // namespace

ArchitectureEntry families::deepseek_v3_entry() {
  ArchitectureEntry entry{};
  entry.name = "deepseek_v3";
  entry.summary = "DeepSeek-V2 with a sigmoid router and its correction (DeepSeek-V3, R1).";
  entry.config_from_json = &deepseek_v3_from_json;
  entry.json_names = &deepseek_v3_json_names;
  return entry;
}

}  // namespace fathom::checkpoint
