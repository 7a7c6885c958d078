#include <algorithm>
#include <cstdint>
#include <string>

#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/gguf_config.h"
#include "harness/checkpoint/gguf_positions.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig deepseek_v2_from_json(const JsonObject& file) {
  HfDecoder decoder(file, {"DeepseekV2ForCausalLM", "rms_norm_eps", 1e-6});
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
  moe.d_ff_shared = moe.d_ff * decoder.json().integer_or("n_shared_experts", 2, 0, 1 << 10);
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

/// V3 and R1 go by the same name.
DecoderConfig deepseek_v2_from_gguf(const GgufFile& file) {
  DecoderConfig config = read_gguf_decoder(file);
  const auto count = [&](const char* key, std::int64_t low, std::int64_t high) {
    return required_gguf_integer(file, std::string("deepseek2.") + key, low, high);
  };
  const auto count_or = [&](const char* key, std::int64_t fallback, std::int64_t high) {
    return file.integer(std::string("deepseek2.") + key) ? count(key, 0, high) : fallback;
  };
  LatentSpec latent;
  latent.q_rank = count_or("attention.q_lora_rank", 0, 1 << 20);
  latent.kv_rank = count("attention.kv_lora_rank", 1, 1 << 20);
  const bool apart = file.integer("deepseek2.attention.value_length_mla").has_value();
  latent.d_value = count(apart ? "attention.value_length_mla" : "attention.value_length", 1, 1 << 20);
  for (LayerSpec& layer : config.layers) {
    latent.d_rope = layer.position.rotary_dim;
    layer.n_kv_heads = layer.n_heads;  // the file counts the one that all share
    layer.latent = latent;
  }
  MoeSpec moe;
  moe.n_groups = std::max<std::int64_t>(1, count_or("expert_group_count", 1, 1 << 16));
  moe.n_chosen_groups = moe.n_groups > 1 ? count("expert_group_used_count", 1, moe.n_groups) : 1;
  moe.d_ff_shared =
      count_or("expert_shared_count", 0, 1 << 10) * count("expert_feed_forward_length", 1, std::int64_t{1} << 28);
  add_gguf_experts(file, moe, {count_or("leading_dense_block_count", 0, 1 << 20), 1}, config);
  for (LayerSpec& layer : config.layers) {
    if (!layer.moe) continue;
    if (layer.moe->n_experts % moe.n_groups != 0)
      file.fail("deepseek2.expert_group_count", "does not divide deepseek2.expert_count");
    layer.moe->group_best = layer.moe->router == RouterKind::kSigmoid ? 2 : 1;  // V3 sums two, V2 takes the best
  }
  return config;
}

NameMap deepseek_v2_json_names(const DecoderConfig&) {
  return latent_expert_names();
}

NameMap deepseek_v2_gguf_names(const DecoderConfig&) {
  return gguf_style_names();
}

}  // namespace

ArchitectureEntry families::deepseek_v2_entry() {
  ArchitectureEntry entry{};
  entry.name = "deepseek_v2";
  entry.gguf_name = "deepseek2";
  entry.summary = "Keys and values from a latent vector, experts in groups, YaRN (DeepSeek-V2; as GGUF V3 and R1 too).";
  entry.config_from_json = &deepseek_v2_from_json;
  entry.config_from_gguf = &deepseek_v2_from_gguf;
  entry.json_names = &deepseek_v2_json_names;
  entry.gguf_names = &deepseek_v2_gguf_names;
  entry.gguf_keys = gguf_expert_keys({"attention.kv_lora_rank", "attention.q_lora_rank", "expert_group_count",
                                      "expert_group_used_count", "expert_shared_count", "leading_dense_block_count"});
  return entry;
}

}  // namespace fathom::checkpoint
