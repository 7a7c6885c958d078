#include <algorithm>
#include <cstdint>
#include <vector>

#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig qwen2_moe_from_json(const JsonObject& file) {
  HfDecoder decoder(file, {"Qwen2MoeForCausalLM"});
  decoder.config.attention_bias = decoder.flag("qkv_bias", true);
  MoeSpec moe;
  moe.n_experts = decoder.size(decoder.json().has("num_experts") ? "num_experts" : "num_local_experts");
  moe.n_chosen = decoder.size_up_to("num_experts_per_tok", moe.n_experts);
  moe.d_ff = decoder.size("moe_intermediate_size");
  moe.renormalise = decoder.flag("norm_topk_prob", false);
  moe.d_ff_shared = decoder.size("shared_expert_intermediate_size");
  moe.shared_gate = true;
  const std::int64_t step = decoder.json().integer_or("decoder_sparse_step", 1, 1, 1 << 20);
  const auto dense = decoder.json().integer_list("mlp_only_layers").value_or(std::vector<std::int64_t>{});
  for (std::int64_t i = 0; i < decoder.config.n_layers(); ++i) {
    const bool is_dense = std::find(dense.begin(), dense.end(), i) != dense.end();
    if (!is_dense && (i + 1) % step == 0) decoder.config.layers[static_cast<std::size_t>(i)].moe = moe;
  }
  return decoder.finish();
}

NameMap qwen2_moe_json_names(const DecoderConfig&) {
  NameMap names = llama_style_names();
  names.layers = with_names(names.layers, {{"mlp.router", "mlp.gate"},
                                           {"mlp.experts.#.gate", "mlp.experts.#.gate_proj"},
                                           {"mlp.experts.#.up", "mlp.experts.#.up_proj"},
                                           {"mlp.experts.#.down", "mlp.experts.#.down_proj"},
                                           {"mlp.shared.gate", "mlp.shared_expert.gate_proj"},
                                           {"mlp.shared.up", "mlp.shared_expert.up_proj"},
                                           {"mlp.shared.down", "mlp.shared_expert.down_proj"},
                                           {"mlp.shared_gate", "mlp.shared_expert_gate"}});
  return names;
}

}  // namespace

ArchitectureEntry families::qwen2_moe_entry() {
  ArchitectureEntry entry{};
  entry.name = "qwen2_moe";
  entry.summary = "Qwen 2 with a mixture of experts and a gated shared one (Qwen1.5-MoE).";
  entry.config_from_json = &qwen2_moe_from_json;
  entry.json_names = &qwen2_moe_json_names;
  return entry;
}

}  // namespace fathom::checkpoint
