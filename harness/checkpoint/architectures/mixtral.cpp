#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig mixtral_from_json(const JsonObject& file) {
  HfDecoder decoder(file, {"MixtralForCausalLM"});
  MoeSpec moe;
  moe.n_experts = decoder.size("num_local_experts");
  moe.n_chosen = decoder.size_up_to("num_experts_per_tok", moe.n_experts);
  moe.d_ff = decoder.size("intermediate_size");
  moe.renormalise = true;
  for (LayerSpec& layer : decoder.config.layers) layer.moe = moe;
  return decoder.finish();
}

NameMap mixtral_json_names(const DecoderConfig&) {
  NameMap names = llama_style_names();
  names.layers = with_names(names.layers, {{"mlp.router", "block_sparse_moe.gate"},
                                           {"mlp.experts.#.gate", "block_sparse_moe.experts.#.w1"},
                                           {"mlp.experts.#.up", "block_sparse_moe.experts.#.w3"},
                                           {"mlp.experts.#.down", "block_sparse_moe.experts.#.w2"}});
  return names;
}

}  // namespace

ArchitectureEntry families::mixtral_entry() {
  ArchitectureEntry entry{};
  entry.name = "mixtral";
  entry.summary = "Mistral with a mixture of experts (Mixtral).";
  entry.config_from_json = &mixtral_from_json;
  entry.json_names = &mixtral_json_names;
  return entry;
}

}  // namespace fathom::checkpoint
