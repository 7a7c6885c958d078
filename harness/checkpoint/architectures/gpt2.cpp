#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/gguf_config.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig gpt2_from_json(const JsonObject& file) {
  HfDecoder decoder(
      file, {"GPT2LMHeadModel", "layer_norm_epsilon", 1e-5, "activation_function", "gelu_new", "n_inner", 4, true});
  decoder.config.norm = NormKind::kLayer;
  decoder.config.norm_bias = true;
  decoder.config.gated_mlp = false;
  decoder.config.attention_bias = decoder.config.attention_out_bias = decoder.config.mlp_bias = true;
  decoder.must_be("add_cross_attention", false);
  return decoder.finish();
}

DecoderConfig gpt2_from_gguf(const GgufFile& file) {
  DecoderConfig config = read_gguf_decoder(file);
  config.gated_mlp = false;
  config.activation = Activation::kGeluTanh;
  return config;
}

NameMap gpt2_json_names(const DecoderConfig&) {
  return {"transformer.h.",
          {{"attention_norm", "ln_1"},
           {"attention.q", "attn.c_attn", Packing::kQkv, true},
           {"attention.k", "attn.c_attn", Packing::kQkv, true},
           {"attention.v", "attn.c_attn", Packing::kQkv, true},
           {"attention.o", "attn.c_proj", Packing::kAlone, true},
           {"mlp_norm", "ln_2"},
           {"mlp.up", "mlp.c_fc", Packing::kAlone, true},
           {"mlp.down", "mlp.c_proj", Packing::kAlone, true}},
          {{"token_embedding", "transformer.wte.weight"},
           {"position_embedding", "transformer.wpe.weight"},
           {"final_norm", "transformer.ln_f"},
           {"head", "lm_head"}},
          false};
}

NameMap gpt2_gguf_names(const DecoderConfig&) {
  return gguf_style_names();
}

}  // namespace

ArchitectureEntry families::gpt2_entry() {
  ArchitectureEntry entry{};
  entry.name = "gpt2";
  entry.gguf_name = "gpt2";
  entry.summary = "Learned positions, matrices stored [in, out], one fused projection (GPT-2).";
  entry.config_from_json = &gpt2_from_json;
  entry.config_from_gguf = &gpt2_from_gguf;
  entry.json_names = &gpt2_json_names;
  entry.gguf_names = &gpt2_gguf_names;
  return entry;
}

}  // namespace fathom::checkpoint
