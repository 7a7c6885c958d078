#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/gguf_config.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

/// A file without this block has ALiBi and none of the rest.
void read_attention(const JsonObject& block, HfDecoder& decoder) {
  if (!block.flag("alibi").value_or(true)) block.fail("alibi", "is off, which transformers does not support either");
  for (const char* key : {"qk_ln", "prefix_lm", "attn_uses_sequence_id"}) {
    if (!block.is_off(key)) block.fail(key, "is not supported by this build");
  }
  if (block.text("attn_type").value_or("multihead_attention") != "multihead_attention")
    block.fail("attn_type", "must be multihead_attention");
  decoder.config.qkv_clip = block.real("clip_qkv").value_or(0);
}

DecoderConfig mpt_from_json(const JsonObject& file) {
  HfDecoder decoder(file, {"MptForCausalLM", "layer_norm_epsilon", 1e-5, "activation", "gelu", "d_ff", 4, true});
  decoder.config.norm = NormKind::kLayer;
  decoder.config.gated_mlp = false;
  decoder.must_be("no_bias", true);
  if (!decoder.json().is_off("logit_scale")) decoder.json().fail("logit_scale", "is not supported by this build");
  decoder.json().has("logit_scale");
  if (const auto block = decoder.json().object("attn_config")) read_attention(*block, decoder);
  if (decoder.json().integer_or("expansion_ratio", 4, 1, 64) != 4)
    decoder.json().fail("expansion_ratio", "must be 4, the only one that transformers knows");
  return decoder.finish();
}

DecoderConfig mpt_from_gguf(const GgufFile& file) {
  DecoderConfig config = read_gguf_decoder(file);
  if (config.qk_norm != QkNorm::kNone)
    file.fail("blk.0.attn_q_norm.weight",
              "is there: norms of queries and keys are not supported for this architecture");
  config.gated_mlp = false;
  config.activation = Activation::kGelu;
  config.qkv_clip = file.real("mpt.attention.clamp_kqv").value_or(0);
  return config;
}

NameMap mpt_json_names(const DecoderConfig&) {
  return {"transformer.blocks.",
          {{"attention_norm", "norm_1"},
           {"attention.q", "attn.Wqkv", Packing::kQkv},
           {"attention.k", "attn.Wqkv", Packing::kQkv},
           {"attention.v", "attn.Wqkv", Packing::kQkv},
           {"attention.o", "attn.out_proj"},
           {"mlp_norm", "norm_2"},
           {"mlp.up", "ffn.up_proj"},
           {"mlp.down", "ffn.down_proj"}},
          {{"token_embedding", "transformer.wte.weight"}, {"final_norm", "transformer.norm_f"}, {"head", "lm_head"}},
          false};
}

NameMap mpt_gguf_names(const DecoderConfig&) {
  return gguf_style_names();
}

}  // namespace

ArchitectureEntry families::mpt_entry() {
  ArchitectureEntry entry{};
  entry.name = "mpt";
  entry.gguf_name = "mpt";
  entry.summary = "ALiBi, no biases at all (MPT).";
  entry.config_from_json = &mpt_from_json;
  entry.config_from_gguf = &mpt_from_gguf;
  entry.json_names = &mpt_json_names;
  entry.gguf_names = &mpt_gguf_names;
  entry.gguf_keys = {"attention.clamp_kqv"};
  return entry;
}

}  // namespace fathom::checkpoint
