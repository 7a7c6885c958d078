#include "harness/checkpoint/gguf_config.h"

#include <fmt/format.h>

#include "harness/checkpoint/gguf_positions.h"
#include "harness/core/text_util.h"

namespace fathom::checkpoint {
namespace {

bool has_gguf_tensor(const GgufFile& file, const char* name) {
  return file.find_tensor(name) != nullptr;
}

void read_gguf_norm(const GgufFile& file, DecoderConfig& out) {
  const std::string rms_key = out.architecture + ".attention.layer_norm_rms_epsilon";
  const std::string layer_key = out.architecture + ".attention.layer_norm_epsilon";
  const bool layer_norm = !file.real(rms_key) && file.real(layer_key);
  const std::string& key = layer_norm ? layer_key : rms_key;
  const auto eps = file.real(key);
  if (!eps) file.fail(key, "is missing; a number above 0 is needed");
  if (!(*eps > 0)) file.fail(key, fmt::format("= {} must be above 0", format_double(*eps)));
  // Files hold float32: 1e-5 comes as 9.99999975e-6, which is what the reference computes with as well.
  out.norm_eps = *eps;
  out.norm = layer_norm ? NormKind::kLayer : NormKind::kRms;
}

void read_gguf_presence(const GgufFile& file, DecoderConfig& out) {
  out.tied_head = !has_gguf_tensor(file, "output.weight");
  out.head_bias = has_gguf_tensor(file, "output.bias");
  out.norm_bias = has_gguf_tensor(file, "output_norm.bias");
  out.attention_bias = has_gguf_tensor(file, "blk.0.attn_q.bias") || has_gguf_tensor(file, "blk.0.attn_qkv.bias");
  out.attention_out_bias = has_gguf_tensor(file, "blk.0.attn_output.bias");
  out.mlp_bias = has_gguf_tensor(file, "blk.0.ffn_up.bias");
  const GgufTensor* q_norm = file.find_tensor("blk.0.attn_q_norm.weight");
  if (q_norm == nullptr) return;
  const LayerSpec& layer = out.layers.front();
  if (q_norm->shape == std::vector<std::int64_t>{layer.d_head}) {
    out.qk_norm = QkNorm::kPerHead;
  } else {
    out.qk_norm = q_norm->shape.size() == 1 ? QkNorm::kWhole : QkNorm::kPerHeadOwn;
  }
}

}  // namespace

DecoderConfig read_gguf_decoder(const GgufFile& file) {
  DecoderConfig out = resolve_gguf_positions(file);
  const std::string& arch = out.architecture;
  read_gguf_norm(file, out);
  const GgufTensor* embedding = file.find_tensor("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2) file.fail("token_embd.weight", "is missing or no matrix");
  out.vocab_size = embedding->shape[0];

  const auto d_ff = gguf_layer_integers(file, arch + ".feed_forward_length", out.layers.size(), 1, std::nullopt);
  for (std::size_t i = 0; i < out.layers.size(); ++i) {
    LayerSpec& layer = out.layers[i];
    if (!layer.softmax_attention) {
      file.fail(arch + ".attention.head_count", fmt::format("or head_count_kv is 0 in layer {}", i));
    }
    const std::int64_t value_length = file.integer(arch + ".attention.value_length").value_or(layer.d_head);
    if (value_length != layer.d_head) {
      file.fail(arch + ".attention.value_length",
                fmt::format("= {} differs from key_length = {}, which is not supported", value_length, layer.d_head));
    }
    layer.d_ff = d_ff[i];
  }
  read_gguf_presence(file, out);
  return out;
}

void read_gguf_experts(const GgufFile& file, const std::string& d_ff_key, DecoderConfig& config) {
  constexpr std::int64_t kMaxExperts = 1 << 16;
  const std::string& arch = config.architecture;
  if (file.integer(arch + ".expert_count").value_or(0) == 0) return;
  MoeSpec moe;
  moe.n_experts = required_gguf_integer(file, arch + ".expert_count", 1, kMaxExperts);
  moe.n_chosen = required_gguf_integer(file, arch + ".expert_used_count", 1, moe.n_experts);
  moe.d_ff = required_gguf_integer(file, arch + "." + d_ff_key, 1, std::int64_t{1} << 28);
  moe.renormalise = true;
  for (LayerSpec& layer : config.layers) layer.moe = moe;
}

void refuse_gguf_key(const GgufFile& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) return;
  if (const auto* flag = std::get_if<bool>(&found->second); flag != nullptr && !*flag) return;
  if (const auto* number = std::get_if<std::int64_t>(&found->second); number != nullptr && *number == 0) return;
  if (const auto* real = std::get_if<double>(&found->second); real != nullptr && (*real == 0 || *real == 1)) return;
  file.fail(key, "is set, which this build does not support for this architecture");
}

}  // namespace fathom::checkpoint
