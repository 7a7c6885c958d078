#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig minimax_from_json(const JsonObject& file) {
  HfDecoder decoder(file, {"MiniMaxForCausalLM", "rms_norm_eps", 1e-5});
  MoeSpec moe;
  moe.n_experts = decoder.size("num_local_experts");
  moe.n_chosen = decoder.size_up_to("num_experts_per_tok", moe.n_experts);
  moe.d_ff = decoder.size("intermediate_size");
  moe.renormalise = true;
  decoder.config.residual_after_norm = true;
  const auto factor = [&](const std::string& name) { return decoder.json().positive_or(name, 1); };
  const std::int64_t n_layers = decoder.config.n_layers();
  for (std::int64_t i = 0; i < n_layers; ++i) {
    LayerSpec& layer = decoder.config.layers[static_cast<std::size_t>(i)];
    layer.moe = moe;
    const std::string kind = layer.softmax_attention ? "full_attn" : "linear_attn";
    layer.attention_carried = factor(kind + "_alpha_factor");
    layer.attention_added = factor(kind + "_beta_factor");
    layer.mlp_carried = factor("mlp_alpha_factor");
    layer.mlp_added = factor("mlp_beta_factor");
    if (layer.softmax_attention) continue;
    layer.n_kv_heads = layer.n_heads;
    if (layer.d_head == 0) layer.d_head = decoder.config.d_model / layer.n_heads;
    layer.linear = LinearSpec{};
    layer.linear->slope_factor = 1 - static_cast<double>(i) / (static_cast<double>(n_layers) - 1 + 1e-5) + 1e-5;
  }
  const LayerSpec& softmax = telling_layer(decoder.config);
  if (softmax.position.rotary_dim < softmax.d_head) {
    decoder.config.warnings.push_back(
        fmt::format("{}: {} of {} lanes of a head rotate, as the model's makers have it; transformers rotates them all",
                    file.where(), softmax.position.rotary_dim, softmax.d_head));
  }
  return decoder.finish();
}

NameMap minimax_json_names(const DecoderConfig&) {
  NameMap names = llama_style_names();
  names.layers = with_names(names.layers, {{"attention.out_norm", "self_attn.norm"},
                                           {"attention.out_gate", "self_attn.output_gate"},
                                           {"mlp.router", "block_sparse_moe.gate"},
                                           {"mlp.experts.#.gate", "block_sparse_moe.experts.#.w1"},
                                           {"mlp.experts.#.up", "block_sparse_moe.experts.#.w3"},
                                           {"mlp.experts.#.down", "block_sparse_moe.experts.#.w2"}});
  names.linear_layers = with_names(names.layers, {{"attention.q", "self_attn.qkv_proj", Packing::kQkvByHead},
                                                  {"attention.k", "self_attn.qkv_proj", Packing::kQkvByHead},
                                                  {"attention.v", "self_attn.qkv_proj", Packing::kQkvByHead},
                                                  {"attention.o", "self_attn.out_proj"}});
  return names;
}

}  // namespace

ArchitectureEntry families::minimax_entry() {
  ArchitectureEntry entry{};
  entry.name = "minimax";
  entry.summary = "Layers of lightning attention between softmax ones, a mixture of experts (MiniMax-Text-01).";
  entry.config_from_json = &minimax_from_json;
  entry.json_names = &minimax_json_names;
  return entry;
}

}  // namespace fathom::checkpoint
