#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/gguf_config.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig stablelm_from_json(const JsonObject& file) {
  HfDecoder decoder(file, {"StableLmForCausalLM", "layer_norm_eps", 1e-5});
  decoder.config.norm = NormKind::kLayer;
  decoder.config.norm_bias = true;
  decoder.config.attention_bias = decoder.flag("use_qkv_bias", false);
  if (decoder.flag("qk_layernorm", false)) decoder.config.qk_norm = QkNorm::kPerHeadOwn;
  decoder.config.parallel_residual = decoder.config.shared_norm = decoder.flag("use_parallel_residual", false);
  return decoder.finish();
}

DecoderConfig stablelm_from_gguf(const GgufFile& file) {
  DecoderConfig config = read_gguf_decoder(file);
  if (config.qk_norm != QkNorm::kNone)
    file.fail("blk.0.attn_q_norm.weight", "is there: norms of single heads are not supported for this architecture");
  // Converters wrote use_parallel_residual = true for models that are not; llama.cpp goes by the tensor as well.
  config.parallel_residual = config.shared_norm = file.find_tensor("blk.0.ffn_norm.weight") == nullptr;
  return config;
}

NameMap stablelm_json_names(const DecoderConfig&) {
  NameMap names = llama_style_names();
  names.layers = with_names(names.layers,
                            {{"attention.q_norm.weight", "self_attn.q_layernorm.norms.#.weight", Packing::kRowsApart},
                             {"attention.k_norm.weight", "self_attn.k_layernorm.norms.#.weight", Packing::kRowsApart}});
  return names;
}

NameMap stablelm_gguf_names(const DecoderConfig&) {
  return gguf_style_names();
}

}  // namespace

ArchitectureEntry families::stablelm_entry() {
  ArchitectureEntry entry{};
  entry.name = "stablelm";
  entry.gguf_name = "stablelm";
  entry.summary = "LayerNorm with bias, SwiGLU, partial RoPE (StableLM).";
  entry.config_from_json = &stablelm_from_json;
  entry.config_from_gguf = &stablelm_from_gguf;
  entry.json_names = &stablelm_json_names;
  entry.gguf_names = &stablelm_gguf_names;
  entry.gguf_keys = {"use_parallel_residual"};
  return entry;
}

}  // namespace fathom::checkpoint
