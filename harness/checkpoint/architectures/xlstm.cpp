#include <cstdint>

#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig xlstm_from_json(const JsonObject& file) {
  HfDecoder decoder(file, {"xLSTMForCausalLM", "norm_eps", 1e-6, "hidden_act", "silu", "d_ff", 1});
  const JsonObject& json = decoder.json();
  decoder.must_be("use_bias", false);
  decoder.must_be("add_out_norm", true);
  if (json.positive_or("eps", 1e-6) != 1e-6) json.fail("eps", "must be 1e-6, the only one that this build has");
  if (json.text("weight_mode").value_or("single") != "single") json.fail("weight_mode", "must be single");
  if (const auto dtype = json.text("inference_state_dtype"); dtype && *dtype != "float32")
    json.fail("inference_state_dtype", "= '" + *dtype + "' is not supported by this build; only float32 is");
  decoder.config.tied_head = false;  // the class knows no tying
  const auto width = [&](const char* factor, double fallback) {
    return static_cast<std::int64_t>(static_cast<double>(decoder.config.d_model) * json.positive_or(factor, fallback));
  };
  LinearSpec linear;
  linear.kind = LinearKind::kMlstm;
  linear.norm_eps = decoder.config.norm_eps;
  linear.gate_softcap = json.positive_or("gate_soft_cap", 15);
  linear.state_chunk = json.integer_or("max_inference_chunksize", 16384, 1, std::int64_t{1} << 40);
  const std::int64_t step = json.integer_or("ffn_round_up_to_multiple_of", 64, 1, 1 << 20);
  const std::int64_t d_ff = (width("ffn_proj_factor", 2.667) + step - 1) / step * step;
  for (LayerSpec& layer : decoder.config.layers) {
    layer.n_kv_heads = layer.n_heads;
    layer.d_head = width("v_dim_factor", 1) / layer.n_heads;
    linear.d_key = width("qk_dim_factor", 0.5) / layer.n_heads;
    if (linear.d_key < 1 || linear.d_key > layer.d_head)
      json.fail("qk_dim_factor", "gives no width, or more than v_dim_factor, which this build does not support");
    layer.linear = linear;
    layer.d_ff = d_ff;
  }
  decoder.config.logit_softcap = json.positive_or("output_logit_soft_cap", 30);
  return decoder.finish();
}

NameMap xlstm_json_names(const DecoderConfig&) {
  return {
      "backbone.blocks.",
      {{"attention_norm", "norm_mlstm"},
       {"attention.q", "mlstm_layer.q"},
       {"attention.k", "mlstm_layer.k"},
       {"attention.v", "mlstm_layer.v"},
       {"attention.o", "mlstm_layer.out_proj"},
       {"attention.out_norm", "mlstm_layer.multihead_norm"},
       {"attention.out_gate", "mlstm_layer.ogate_preact"},
       {"attention.input_gate", "mlstm_layer.igate_preact"},
       {"attention.forget_gate", "mlstm_layer.fgate_preact"},
       {"mlp_norm", "norm_ffn"},
       {"mlp.gate", "ffn.proj_up_gate"},
       {"mlp.up", "ffn.proj_up"},
       {"mlp.down", "ffn.proj_down"}},
      {{"token_embedding", "backbone.embeddings.weight"}, {"final_norm", "backbone.out_norm"}, {"head", "lm_head"}}};
}

}  // namespace

ArchitectureEntry families::xlstm_entry() {
  ArchitectureEntry entry{};
  entry.name = "xlstm";
  entry.summary = "Gated recurrence in place of attention, no positions at all: the contrast (xLSTM).";
  entry.config_from_json = &xlstm_from_json;
  entry.json_names = &xlstm_json_names;
  return entry;
}

}  // namespace fathom::checkpoint
