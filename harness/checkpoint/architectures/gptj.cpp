#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig gptj_from_json(const JsonObject& file) {
  HfDecoder decoder(
      file, {"GPTJForCausalLM", "layer_norm_epsilon", 1e-5, "activation_function", "gelu_new", "n_inner", 4, false});
  decoder.config.norm = NormKind::kLayer;
  decoder.config.norm_bias = true;
  decoder.config.gated_mlp = false;
  decoder.config.mlp_bias = decoder.config.head_bias = true;
  decoder.config.parallel_residual = decoder.config.shared_norm = true;
  return decoder.finish();
}

NameMap gptj_json_names(const DecoderConfig&) {
  return {"transformer.h.",
          {{"attention_norm", "ln_1"},
           {"attention.q", "attn.q_proj"},
           {"attention.k", "attn.k_proj"},
           {"attention.v", "attn.v_proj"},
           {"attention.o", "attn.out_proj"},
           {"mlp.up", "mlp.fc_in"},
           {"mlp.down", "mlp.fc_out"}},
          {{"token_embedding", "transformer.wte.weight"}, {"final_norm", "transformer.ln_f"}, {"head", "lm_head"}},
          false};
}

}  // namespace

ArchitectureEntry families::gptj_entry() {
  ArchitectureEntry entry{};
  entry.name = "gptj";
  entry.summary = "Attention and MLP side by side on one norm, interleaved partial RoPE, a head with bias (GPT-J).";
  entry.config_from_json = &gptj_from_json;
  entry.json_names = &gptj_json_names;
  return entry;
}

}  // namespace fathom::checkpoint
