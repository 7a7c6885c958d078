#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig opt_from_json(const JsonObject& file) {
  HfDecoder decoder(file,
                    {"OPTForCausalLM", "layer_norm_eps", 1e-5, "activation_function", "relu", "ffn_dim", 0, true});
  decoder.config.norm = NormKind::kLayer;
  decoder.config.norm_bias = true;
  decoder.config.gated_mlp = false;
  decoder.must_be("layer_norm_elementwise_affine", true);
  // OPT-350m: norms behind the sums, none before the head, an embedding of another width.
  if (!decoder.flag("do_layer_norm_before", true)) {
    decoder.config.pre_norm = false;
    decoder.config.norm_after_sum = true;
  }
  decoder.config.final_norm = decoder.config.pre_norm && !decoder.flag("_remove_final_layer_norm", false);
  const std::int64_t width = decoder.json().integer_or("word_embed_proj_dim", decoder.config.d_model, 1, 1 << 28);
  if (width != decoder.config.d_model) decoder.config.d_embedding = width;
  const bool bias = decoder.flag("enable_bias", true);
  decoder.config.attention_bias = decoder.config.attention_out_bias = decoder.config.mlp_bias = bias;
  return decoder.finish();
}

NameMap opt_json_names(const DecoderConfig&) {
  return {"model.decoder.layers.",
          {{"attention_norm", "self_attn_layer_norm"},
           {"attention.q", "self_attn.q_proj"},
           {"attention.k", "self_attn.k_proj"},
           {"attention.v", "self_attn.v_proj"},
           {"attention.o", "self_attn.out_proj"},
           {"mlp_norm", "final_layer_norm"},
           {"mlp.up", "fc1"},
           {"mlp.down", "fc2"}},
          {{"token_embedding", "model.decoder.embed_tokens.weight"},
           {"embedding_in", "model.decoder.project_in"},
           {"embedding_out", "model.decoder.project_out"},
           {"position_embedding", "model.decoder.embed_positions.weight"},
           {"final_norm", "model.decoder.final_layer_norm"},
           {"head", "lm_head"}},
          false};
}

}  // namespace

ArchitectureEntry families::opt_entry() {
  ArchitectureEntry entry{};
  entry.name = "opt";
  entry.summary = "Learned positions behind two unused rows, ReLU; OPT-350m's norms behind the sums (OPT).";
  entry.config_from_json = &opt_from_json;
  entry.json_names = &opt_json_names;
  return entry;
}

}  // namespace fathom::checkpoint
