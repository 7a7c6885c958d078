#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/gguf_config.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig falcon_from_json(const JsonObject& file) {
  HfDecoder decoder(
      file, {"FalconForCausalLM", "layer_norm_epsilon", 1e-5, "activation", "gelu", "ffn_hidden_size", 4, true});
  decoder.config.norm = NormKind::kLayer;
  decoder.config.norm_bias = true;
  decoder.config.gated_mlp = false;
  const bool bias = decoder.flag("bias", false);
  decoder.config.attention_bias = decoder.config.attention_out_bias = decoder.config.mlp_bias = bias;
  const bool grouped = decoder.flag("new_decoder_architecture", false);
  decoder.json().has("multi_query");  // read with the positions
  const bool parallel = decoder.flag("parallel_attn", true);
  decoder.config.parallel_residual = grouped || parallel;
  const std::int64_t n_norms = decoder.json().integer_or("num_ln_in_parallel_attn", grouped ? 2 : 1, 1, 2);
  if (!grouped && n_norms != 1) decoder.json().fail("num_ln_in_parallel_attn", "= 2 needs new_decoder_architecture");
  decoder.config.shared_norm = decoder.config.parallel_residual && n_norms == 1;
  return decoder.finish();
}

/// Falcon 7B, 40B and 180B. Whether a model has ALiBi and sequential blocks, no key says: the small Falcon-RW, which
/// does, also has biases.
DecoderConfig falcon_from_gguf(const GgufFile& file) {
  if (file.find_tensor("blk.0.attn_qkv.bias") != nullptr) {
    file.fail("blk.0.attn_qkv.bias",
              "is there: Falcon-RW has ALiBi, which no GGUF key says and this build does not support from GGUF; load "
              "its safetensors");
  }
  DecoderConfig config = read_gguf_decoder(file);
  config.gated_mlp = false;
  config.activation = Activation::kGelu;
  config.parallel_residual = true;
  config.shared_norm = file.find_tensor("blk.0.attn_norm_2.weight") == nullptr;
  return config;
}

NameMap falcon_json_names(const DecoderConfig& config) {
  // A fused projection is one group for every key-value head; with a single head, or all in one, that is q, then k,
  // then v. Two norms have names of their own in parallel blocks.
  const bool two_norms = config.parallel_residual && !config.shared_norm;
  return {"transformer.h.",
          {{"attention_norm", two_norms ? "ln_attn" : "input_layernorm"},
           {"attention.q", "self_attention.query_key_value", Packing::kQkvByHead},
           {"attention.k", "self_attention.query_key_value", Packing::kQkvByHead},
           {"attention.v", "self_attention.query_key_value", Packing::kQkvByHead},
           {"attention.o", "self_attention.dense"},
           {"mlp_norm", two_norms ? "ln_mlp" : "post_attention_layernorm"},
           {"mlp.up", "mlp.dense_h_to_4h"},
           {"mlp.down", "mlp.dense_4h_to_h"}},
          {{"token_embedding", "transformer.word_embeddings.weight"},
           {"final_norm", "transformer.ln_f"},
           {"head", "lm_head"}},
          false};
}

NameMap falcon_gguf_names(const DecoderConfig& config) {
  NameMap names = gguf_style_names();
  if (config.shared_norm) return names;
  names.layers = with_names(names.layers, {{"attention_norm", "attn_norm_2"}, {"mlp_norm", "attn_norm"}});
  return names;
}

}  // namespace

ArchitectureEntry families::falcon_entry() {
  ArchitectureEntry entry{};
  entry.name = "falcon";
  entry.gguf_name = "falcon";
  entry.summary = "One key-value head or a few, attention and MLP side by side, RoPE or ALiBi (Falcon).";
  entry.config_from_json = &falcon_from_json;
  entry.config_from_gguf = &falcon_from_gguf;
  entry.json_names = &falcon_json_names;
  entry.gguf_names = &falcon_gguf_names;
  return entry;
}

}  // namespace fathom::checkpoint
