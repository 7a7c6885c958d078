#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/gguf_config.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig bloom_from_json(const JsonObject& file) {
  HfDecoder decoder(file,
                    {"BloomForCausalLM", "layer_norm_epsilon", 1e-5, "hidden_act", "gelu_new", "n_inner", 4, true});
  decoder.config.norm = NormKind::kLayer;
  decoder.config.norm_bias = true;
  decoder.config.gated_mlp = false;
  decoder.config.attention_bias = decoder.config.attention_out_bias = decoder.config.mlp_bias = true;
  decoder.config.residual_after_norm = decoder.flag("apply_residual_connection_post_layernorm", false);
  // The slow way sums slices of the projections apart and leaves out their biases.
  if (decoder.json().integer_or("pretraining_tp", 1, 1, 1 << 20) > 1) decoder.must_be("slow_but_exact", false);
  decoder.json().has("slow_but_exact");
  decoder.config.activation = Activation::kGeluTanh;
  decoder.config.embedding_norm = true;
  return decoder.finish();
}

DecoderConfig bloom_from_gguf(const GgufFile& file) {
  DecoderConfig config = read_gguf_decoder(file);
  config.gated_mlp = false;
  config.activation = Activation::kGeluTanh;
  config.embedding_norm = true;
  return config;
}

NameMap bloom_json_names(const DecoderConfig&) {
  return {"transformer.h.",
          {{"attention_norm", "input_layernorm"},
           {"attention.q", "self_attention.query_key_value", Packing::kQkvByHead},
           {"attention.k", "self_attention.query_key_value", Packing::kQkvByHead},
           {"attention.v", "self_attention.query_key_value", Packing::kQkvByHead},
           {"attention.o", "self_attention.dense"},
           {"mlp_norm", "post_attention_layernorm"},
           {"mlp.up", "mlp.dense_h_to_4h"},
           {"mlp.down", "mlp.dense_4h_to_h"}},
          {{"token_embedding", "transformer.word_embeddings.weight"},
           {"embedding_norm", "transformer.word_embeddings_layernorm"},
           {"final_norm", "transformer.ln_f"},
           {"head", "lm_head"}},
          false};
}

NameMap bloom_gguf_names(const DecoderConfig&) {
  return gguf_style_names();
}

}  // namespace

ArchitectureEntry families::bloom_entry() {
  ArchitectureEntry entry{};
  entry.name = "bloom";
  entry.gguf_name = "bloom";
  entry.summary = "ALiBi, a norm after the embedding, fused per head (BLOOM).";
  entry.config_from_json = &bloom_from_json;
  entry.config_from_gguf = &bloom_from_gguf;
  entry.json_names = &bloom_json_names;
  entry.gguf_names = &bloom_gguf_names;
  return entry;
}

}  // namespace fathom::checkpoint
