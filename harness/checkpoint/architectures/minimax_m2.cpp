#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/gguf_config.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig minimax_m2_from_json(const JsonObject& file) {
  HfDecoder decoder(file, {"MiniMaxM2ForCausalLM", "rms_norm_eps", 1e-6});
  decoder.config.qk_norm = QkNorm::kWhole;
  decoder.must_be("use_qk_norm", true);
  MoeSpec moe;
  moe.n_experts = decoder.size("num_local_experts");
  moe.n_chosen = decoder.size_up_to("num_experts_per_tok", moe.n_experts);
  moe.d_ff = decoder.size("intermediate_size");
  moe.router = RouterKind::kSigmoid;
  moe.router_correction = moe.renormalise = true;
  for (LayerSpec& layer : decoder.config.layers) layer.moe = moe;
  return decoder.finish();
}

DecoderConfig minimax_m2_from_gguf(const GgufFile& file) {
  DecoderConfig config = read_gguf_decoder(file);
  config.qk_norm = QkNorm::kWhole;
  MoeSpec moe;
  moe.router = RouterKind::kSigmoid;
  moe.renormalise = true;
  add_gguf_experts(file, moe, {}, config);
  return config;
}

NameMap minimax_m2_json_names(const DecoderConfig&) {
  NameMap names = llama_style_names();
  names.layers = with_names(names.layers, {{"mlp.router", "block_sparse_moe.gate"},
                                           {"mlp.experts.#.gate", "block_sparse_moe.experts.#.w1"},
                                           {"mlp.experts.#.up", "block_sparse_moe.experts.#.w3"},
                                           {"mlp.experts.#.down", "block_sparse_moe.experts.#.w2"},
                                           {"mlp.router_correction", "block_sparse_moe.e_score_correction_bias"}});
  return names;
}

NameMap minimax_m2_gguf_names(const DecoderConfig&) {
  return gguf_style_names();
}

}  // namespace

ArchitectureEntry families::minimax_m2_entry() {
  ArchitectureEntry entry{};
  entry.name = "minimax_m2";
  entry.gguf_name = "minimax-m2";
  entry.summary = "Partial RoPE, norms over the whole of queries and keys, a sigmoid router (MiniMax-M2).";
  entry.config_from_json = &minimax_m2_from_json;
  entry.config_from_gguf = &minimax_m2_from_gguf;
  entry.json_names = &minimax_m2_json_names;
  entry.gguf_names = &minimax_m2_gguf_names;
  entry.gguf_keys = gguf_expert_keys();
  return entry;
}

}  // namespace fathom::checkpoint
