#include <cstdint>
#include <string>

#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig inkling_text_from_json(const JsonObject& file) {
  HfDecoder decoder(file, {"InklingForCausalLM", "rms_norm_eps", 1e-6});
  decoder.config.qk_norm = QkNorm::kPerHead;
  decoder.config.embedding_norm = decoder.config.mlp_scale = true;
  decoder.config.logit_multiplier = 1 / decoder.json().positive_or("logits_mup_width_multiplier", 24);
  decoder.config.tied_head = false;  // the class knows no tying
  decoder.must_be("shared_expert_sink", true);
  if (decoder.json().has("unpadded_vocab_size")) {
    decoder.config.stored_vocab = decoder.config.vocab_size;
    decoder.config.vocab_size = decoder.size_up_to("unpadded_vocab_size", decoder.config.vocab_size);
  }
  MoeSpec moe;
  moe.n_experts = decoder.size("n_routed_experts");
  moe.n_always = decoder.size("n_shared_experts");
  moe.n_chosen = decoder.size_up_to("num_experts_per_tok", moe.n_experts);
  moe.d_ff = decoder.size("moe_intermediate_size");
  moe.router = RouterKind::kSigmoid;
  moe.router_correction = moe.renormalise = true;
  moe.scale = decoder.json().positive_or("route_scale", 8);
  const auto kinds = decoder.json().text_list("mlp_layer_types");
  if (!kinds || static_cast<std::int64_t>(kinds->size()) != decoder.config.n_layers())
    decoder.json().fail("mlp_layer_types", "must say dense or sparse for every layer");
  const char* width = decoder.json().has("conv_kernel_size") ? "conv_kernel_size" : "sconv_kernel_size";
  for (std::size_t i = 0; i < kinds->size(); ++i) {
    LayerSpec& layer = decoder.config.layers[i];
    layer.conv_width = decoder.size(width);
    if ((*kinds)[i] == "sparse") {
      layer.moe = moe;
    } else if ((*kinds)[i] != "dense") {
      decoder.json().fail("mlp_layer_types", "holds '" + (*kinds)[i] + "'; supported: dense, sparse");
    }
  }
  return decoder.finish();
}

NameMap inkling_text_json_names(const DecoderConfig&) {
  NameMap names = llama_style_names();
  names.whole = with_names(names.whole, {{"embedding_norm", "model.embed_tokens.embed_norm"}});
  names.layers = with_names(names.layers, {{"attention.k_conv", "self_attn.k_sconv.conv1d.weight"},
                                           {"attention.v_conv", "self_attn.v_sconv.conv1d.weight"},
                                           {"attention_conv", "attn_sconv.conv1d.weight"},
                                           {"mlp_conv", "mlp_sconv.conv1d.weight"},
                                           {"position.state", "self_attn.r_proj.weight"},
                                           {"position.curves", "self_attn.rel_logits_proj.proj"},
                                           {"mlp.scale", "mlp.global_scale"}});
  names.sparse_layers =
      with_names(names.layers, {{"mlp.scale", "mlp.gate.global_scale"},
                                {"mlp.router", "mlp.gate"},
                                {"mlp.router_correction", "mlp.gate.e_score_correction_bias"},
                                {"mlp.experts.#.gate.weight", "mlp.experts.gate_up_proj", Packing::kGateUp},
                                {"mlp.experts.#.up.weight", "mlp.experts.gate_up_proj", Packing::kGateUp},
                                {"mlp.experts.#.down.weight", "mlp.experts.down_proj"},
                                {"mlp.always.#.gate.weight", "mlp.shared_experts.gate_proj"},
                                {"mlp.always.#.up.weight", "mlp.shared_experts.up_proj"},
                                {"mlp.always.#.down.weight", "mlp.shared_experts.down_proj"}});
  return names;
}

}  // namespace

ArchitectureEntry families::inkling_text_entry() {
  ArchitectureEntry entry{};
  entry.name = "inkling_text";
  entry.summary =
      "A learned bias over the distance in place of RoPE, short convolutions, a mixture of experts (Inkling).";
  entry.config_from_json = &inkling_text_from_json;
  entry.json_names = &inkling_text_json_names;
  return entry;
}

}  // namespace fathom::checkpoint
