#include "tests/support/gguf_forms.h"

#include <cmath>

namespace fathom::test {
namespace {

using nlohmann::json;

void window_keys(GgufMetadata& out) {
  out.integer("attention.sliding_window", {"sliding_window"});
}

void gemma_keys(GgufMetadata& out) {
  out.windows();
  out.real("attn_logit_softcapping", {"attn_logit_softcapping"});
  out.real("final_logit_softcapping", {"final_logit_softcapping"});
  // No converter writes it, the loaders take it from the size; tiny models have no published size.
  out.real("attention.scale", 1 / std::sqrt(out.config.at("query_pre_attn_scalar").get<double>()));
}

void qwen2_keys(GgufMetadata& out) {
  if (out.config.value("use_sliding_window", false)) out.windows();
}

void cohere_keys(GgufMetadata& out) {
  out.real("logit_scale", {"logit_scale"});
  out.text("rope.scaling.type", "none");
}

void cohere2_keys(GgufMetadata& out) {
  cohere_keys(out);
  out.windows();
}

void granite_keys(GgufMetadata& out) {
  out.real("attention.scale", {"attention_multiplier"});
  out.real("embedding_scale", {"embedding_multiplier"});
  out.real("residual_scale", {"residual_multiplier"});
  out.real("logit_scale", {"logits_scaling"});
}

void expert_width_keys(GgufMetadata& out) {
  out.integer("expert_feed_forward_length", {"moe_intermediate_size", "intermediate_size"});
}

void gpt_oss_keys(GgufMetadata& out) {
  expert_width_keys(out);
  out.windows();
}

void minimax_m2_keys(GgufMetadata& out) {
  expert_width_keys(out);
  out.integer("expert_gating_func", 2);
}

void ministral3_keys(GgufMetadata& out) {
  const json& rope = out.config.at("rope_parameters");
  out.real("rope.scaling.yarn_log_multiplier", rope.at("mscale_all_dim").get<double>());
  out.real("attention.temperature_scale", rope["llama_4_scaling_beta"].get<double>());
}

void deepseek_keys(GgufMetadata& out) {
  expert_width_keys(out);
  const auto size = [&](const char* key) { return out.config[key].get<std::int64_t>(); };
  out.integer("leading_dense_block_count", {"first_k_dense_replace"});
  out.integer("attention.q_lora_rank", {"q_lora_rank"});
  out.integer("attention.kv_lora_rank", {"kv_lora_rank"});
  const std::int64_t d_key = size("qk_nope_head_dim") + size("qk_rope_head_dim");
  const bool now = out.year == GgufYear::kNow;
  out.integer("attention.key_length", now ? size("kv_lora_rank") + size("qk_rope_head_dim") : d_key);
  out.integer("attention.value_length", size(now ? "kv_lora_rank" : "v_head_dim"));
  if (now) {
    out.integer("attention.key_length_mla", d_key);
    out.integer("attention.value_length_mla", size("v_head_dim"));
  }
  out.integer("expert_count", {"n_routed_experts"});
  out.integer("expert_shared_count", {"n_shared_experts"});
  out.real("expert_weights_scale", {"routed_scaling_factor"});
  if (out.config.value("norm_topk_prob", false)) out.flag("expert_weights_norm", true);
  if (out.config.at("model_type") == "deepseek_v3") out.integer("expert_gating_func", 2);
  out.real("rope.scaling.yarn_log_multiplier",
           0.1 * out.config.at("rope_parameters").at("mscale_all_dim").get<double>());
}

void llama4_keys(GgufMetadata& out) {
  expert_width_keys(out);
  out.integer("interleave_moe_layer_step", {"interleave_moe_layer_step"});
  out.integer("attention.chunk_size", {"attention_chunk_size"});
  out.real("attention.temperature_scale", {"attn_scale"});
  out.integer("attention.temperature_length", {"floor_scale"});
}

void parallel_keys(GgufMetadata& out) {
  out.flag("use_parallel_residual", out.config.at("use_parallel_residual"));
}

/// Some converters wrote the key for models that are not parallel.
void stablelm_keys(GgufMetadata& out) {
  out.flag("use_parallel_residual", true);
}

void mpt_keys(GgufMetadata& out) {
  const json& attention = out.config.at("attn_config");
  out.real("attention.max_alibi_bias", attention.at("alibi_bias_max").get<double>());
  if (!attention.at("clip_qkv").is_null()) out.real("attention.clamp_kqv", attention.at("clip_qkv").get<double>());
}

}  // namespace

const std::map<std::string, GgufForm, std::less<>>& gguf_forms() {
  constexpr QkRows kPairs = QkRows::kPairsTogether, kRows = QkRows::kAsTheyAre;
  static const std::map<std::string, GgufForm, std::less<>> forms = {
      {"bloom", {"bloom", nullptr, kRows, true}},
      {"cohere", {"command-r", cohere_keys}},
      {"cohere2", {"cohere2", cohere2_keys}},
      {"deepseek_v2", {"deepseek2", deepseek_keys}},
      {"deepseek_v3", {"deepseek2", deepseek_keys}},
      {"falcon", {"falcon", nullptr, kRows, true}},
      {"gemma", {"gemma"}},
      {"gemma2", {"gemma2", gemma_keys}},
      {"gemma3_text", {"gemma3", gemma_keys}},
      {"glm4", {"glm4", nullptr, kRows, false, true}},
      {"gpt2", {"gpt2", nullptr, kRows, true}},
      {"gpt_neox", {"gptneox", parallel_keys, kRows, true}},
      {"gpt_oss", {"gpt-oss", gpt_oss_keys, kRows, false, false, {{"mlp_norm", "post_attention_norm"}}}},
      {"granite", {"granite", granite_keys, kPairs}},
      {"llama", {"llama", nullptr, kPairs}},
      {"llama4_text", {"llama4", llama4_keys}},
      {"minimax_m2", {"minimax-m2", minimax_m2_keys}},
      {"ministral3", {"mistral3", ministral3_keys, kPairs}},
      {"mistral", {"llama", window_keys, kPairs}},
      {"mixtral", {"llama", nullptr, kPairs}},
      {"mpt", {"mpt", mpt_keys, kRows, true}},
      {"olmo2", {"olmo2"}},
      {"phi", {"phi2"}},
      {"phi3", {"phi3", window_keys, kRows, true, true}},
      {"qwen2", {"qwen2", qwen2_keys}},
      {"qwen3", {"qwen3"}},
      {"qwen3_moe", {"qwen3moe", expert_width_keys}},
      {"smollm3", {"smollm3", nullptr, kPairs}},
      {"stablelm", {"stablelm", stablelm_keys}},
      {"starcoder2", {"starcoder2", window_keys}},
  };
  return forms;
}

const std::map<std::string, std::string>& common_gguf_names() {
  static const std::map<std::string, std::string> names = {{"token_embedding", "token_embd.weight"},
                                                           {"position_embedding", "position_embd.weight"},
                                                           {"embedding_norm", "token_embd_norm"},
                                                           {"final_norm", "output_norm"},
                                                           {"head", "output"},
                                                           {"attention_norm", "attn_norm"},
                                                           {"attention.q", "attn_q"},
                                                           {"attention.k", "attn_k"},
                                                           {"attention.v", "attn_v"},
                                                           {"attention.o", "attn_output"},
                                                           {"attention.q_norm", "attn_q_norm"},
                                                           {"attention.k_norm", "attn_k_norm"},
                                                           {"attention.sinks", "attn_sinks.weight"},
                                                           {"attention.q_a", "attn_q_a"},
                                                           {"attention.q_a_norm", "attn_q_a_norm"},
                                                           {"attention.q_b", "attn_q_b"},
                                                           {"attention.kv_a", "attn_kv_a_mqa"},
                                                           {"attention.kv_a_norm", "attn_kv_a_norm"},
                                                           {"attention.kv_b", "attn_kv_b"},
                                                           {"attention_post_norm", "post_attention_norm"},
                                                           {"mlp_norm", "ffn_norm"},
                                                           {"mlp.gate", "ffn_gate"},
                                                           {"mlp.up", "ffn_up"},
                                                           {"mlp.down", "ffn_down"},
                                                           {"mlp_post_norm", "post_ffw_norm"},
                                                           {"mlp.router", "ffn_gate_inp"},
                                                           {"mlp.router_correction", "exp_probs_b.bias"},
                                                           {"mlp.experts.gate", "ffn_gate_exps"},
                                                           {"mlp.experts.up", "ffn_up_exps"},
                                                           {"mlp.experts.down", "ffn_down_exps"},
                                                           {"mlp.shared.gate", "ffn_gate_shexp"},
                                                           {"mlp.shared.up", "ffn_up_shexp"},
                                                           {"mlp.shared.down", "ffn_down_shexp"}};
  return names;
}

}  // namespace fathom::test
