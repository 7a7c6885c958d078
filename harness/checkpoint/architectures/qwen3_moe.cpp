#include <algorithm>
#include <cstdint>
#include <vector>

#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/gguf_config.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig qwen3_moe_from_json(const JsonObject& file) {
  HfDecoder decoder(file, {"Qwen3MoeForCausalLM"});
  decoder.config.qk_norm = QkNorm::kPerHead;
  decoder.config.attention_bias = decoder.config.attention_out_bias = decoder.flag("attention_bias", false);
  MoeSpec moe;
  moe.n_experts = decoder.size(decoder.json().has("num_experts") ? "num_experts" : "num_local_experts");
  moe.n_chosen = decoder.size_up_to("num_experts_per_tok", moe.n_experts);
  moe.d_ff = decoder.size("moe_intermediate_size");
  moe.renormalise = decoder.flag("norm_topk_prob", false);
  const std::int64_t step = decoder.json().integer_or("decoder_sparse_step", 1, 1, 1 << 20);
  const auto dense = decoder.json().integer_list("mlp_only_layers").value_or(std::vector<std::int64_t>{});
  for (std::int64_t i = 0; i < decoder.config.n_layers(); ++i) {
    const bool is_dense = std::find(dense.begin(), dense.end(), i) != dense.end();
    if (!is_dense && (i + 1) % step == 0) decoder.config.layers[static_cast<std::size_t>(i)].moe = moe;
  }
  return decoder.finish();
}

DecoderConfig qwen3_moe_from_gguf(const GgufFile& file) {
  DecoderConfig config = read_gguf_decoder(file);
  MoeSpec moe;
  moe.renormalise = true;
  add_gguf_experts(file, moe, {}, config);
  return config;
}

NameMap qwen3_moe_json_names(const DecoderConfig&) {
  NameMap names = llama_style_names();
  names.layers = with_names(names.layers, {{"mlp.router", "mlp.gate"},
                                           {"mlp.experts.#.gate", "mlp.experts.#.gate_proj"},
                                           {"mlp.experts.#.up", "mlp.experts.#.up_proj"},
                                           {"mlp.experts.#.down", "mlp.experts.#.down_proj"}});
  return names;
}

NameMap qwen3_moe_gguf_names(const DecoderConfig&) {
  return gguf_style_names();
}

}  // namespace

ArchitectureEntry families::qwen3_moe_entry() {
  ArchitectureEntry entry{};
  entry.name = "qwen3_moe";
  entry.gguf_name = "qwen3moe";
  entry.summary = "Qwen 3 with a mixture of experts (Qwen3-30B-A3B).";
  entry.config_from_json = &qwen3_moe_from_json;
  entry.config_from_gguf = &qwen3_moe_from_gguf;
  entry.json_names = &qwen3_moe_json_names;
  entry.gguf_names = &qwen3_moe_gguf_names;
  entry.gguf_keys = gguf_expert_keys();
  return entry;
}

}  // namespace fathom::checkpoint
