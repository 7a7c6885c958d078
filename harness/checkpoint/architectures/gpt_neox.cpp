#include <cstdint>

#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/gguf_config.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig gpt_neox_from_json(const JsonObject& file) {
  HfDecoder decoder(
      file, {"GPTNeoXForCausalLM", "layer_norm_eps", 1e-5, "hidden_act", "gelu", "intermediate_size", 0, false});
  const auto block = file.object("rope_parameters");
  if (file.has("rope_theta") && !file.has("rotary_emb_base") && !(block && block->has("rope_theta")) &&
      file.real("rope_theta") != 10000) {
    file.fail("rope_theta",
              "is not what this model_type calls its base: transformers would take 10000. Call it "
              "rotary_emb_base");
  }
  decoder.config.norm = NormKind::kLayer;
  decoder.config.norm_bias = true;
  decoder.config.gated_mlp = false;
  decoder.config.attention_bias = decoder.config.attention_out_bias = decoder.flag("attention_bias", true);
  decoder.config.mlp_bias = true;
  decoder.config.parallel_residual = decoder.flag("use_parallel_residual", true);
  return decoder.finish();
}

DecoderConfig gpt_neox_from_gguf(const GgufFile& file) {
  constexpr std::int64_t kLayersOf20B = 44;  // the one with the approximate GELU; Pythia and its kin have the exact one
  DecoderConfig config = read_gguf_decoder(file);
  config.gated_mlp = false;
  config.activation = config.n_layers() == kLayersOf20B ? Activation::kGeluTanh : Activation::kGelu;
  config.parallel_residual = file.flag("gptneox.use_parallel_residual").value_or(true);
  return config;
}

NameMap gpt_neox_json_names(const DecoderConfig&) {
  return {"gpt_neox.layers.",
          {{"attention_norm", "input_layernorm"},
           {"attention.q", "attention.query_key_value", Packing::kQkvByHead},
           {"attention.k", "attention.query_key_value", Packing::kQkvByHead},
           {"attention.v", "attention.query_key_value", Packing::kQkvByHead},
           {"attention.o", "attention.dense"},
           {"mlp_norm", "post_attention_layernorm"},
           {"mlp.up", "mlp.dense_h_to_4h"},
           {"mlp.down", "mlp.dense_4h_to_h"}},
          {{"token_embedding", "gpt_neox.embed_in.weight"},
           {"final_norm", "gpt_neox.final_layer_norm"},
           {"head", "embed_out"}},
          false};
}

NameMap gpt_neox_gguf_names(const DecoderConfig&) {
  return gguf_style_names();
}

}  // namespace

ArchitectureEntry families::gpt_neox_entry() {
  ArchitectureEntry entry{};
  entry.name = "gpt_neox";
  entry.gguf_name = "gptneox";
  entry.summary = "Partial RoPE, attention and MLP side by side with a norm each, fused per head (Pythia, GPT-NeoX).";
  entry.config_from_json = &gpt_neox_from_json;
  entry.config_from_gguf = &gpt_neox_from_gguf;
  entry.json_names = &gpt_neox_json_names;
  entry.gguf_names = &gpt_neox_gguf_names;
  entry.gguf_keys = {"use_parallel_residual"};
  return entry;
}

}  // namespace fathom::checkpoint
