#include "harness/checkpoint/gguf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/checkpoint/gguf_family.h"
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
  // Files hold float32: 1e-5 comes as 9.99999975e-6, which is what the reference computes with as well.
  out.norm_eps = required_gguf_positive(file, key);
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

/// Reads where the resolver takes what llama.cpp supposes, and warns: a picture of positions is worth having even so,
/// numbers are not.
void refuse_gguf_gaps(const GgufFile& file, const DecoderConfig& config) {
  const GgufFamily* family = find_gguf_family(config.architecture);
  const std::string scale = config.architecture + ".attention.scale";
  const bool unknown =
      family != nullptr && gemma_scale(*family, config.n_layers(), config.d_model) == GemmaScale::kUnknown;
  if (unknown && file.real(scale).value_or(0) == 0) {
    file.fail(scale, fmt::format("is missing: GGUF has no key for query_pre_attn_scalar, and {} layers of width {} are "
                                 "none of the published sizes; set it to query_pre_attn_scalar^-0.5 of config.json",
                                 config.n_layers(), config.d_model));
  }
  const std::string window = config.architecture + ".attention.sliding_window";
  const std::int64_t width = file.integer(window).value_or(0);
  const bool used =
      std::any_of(config.layers.begin(), config.layers.end(), [](const LayerSpec& l) { return l.window.has_value(); });
  if (width > 0 && width < config.claimed_context && !used) {
    const std::string pattern = window + "_pattern";
    if (file.metadata().count(pattern) != 0) return;  // it says that no layer has it
    file.fail(window, fmt::format("= {}, but which layers have it is nowhere said; {} must be a list with 1 for those "
                                  "that do",
                                  width, pattern));
  }
}

/// What changes the computation of one family or another, and what it says where it changes nothing: the value beside
/// it (1 is true for a flag), and 0 for a number.
struct ChangingKey {
  std::string_view name;
  double neutral;
};

constexpr ChangingKey kChangingKeys[] = {{"attention.causal", 1},
                                         {"attention.clamp_kqv", 0},
                                         {"attention.kv_lora_rank", 0},
                                         {"attention.output_scale", 1},
                                         {"attention.q_lora_rank", 0},
                                         {"attention.shared_kv_layers", 0},
                                         {"attention.value_scale", 1},
                                         {"attn_logit_softcapping", 0},
                                         {"embedding_scale", 1},
                                         {"expert_count", 0},
                                         {"expert_gating_func", 1},
                                         {"expert_group_count", 1},
                                         {"expert_group_used_count", 1},
                                         {"expert_shared_count", 0},
                                         {"expert_shared_feed_forward_length", 0},
                                         {"expert_used_count", 0},
                                         {"expert_weights_norm", 0},
                                         {"expert_weights_scale", 1},
                                         {"final_logit_softcapping", 0},
                                         {"interleave_moe_layer_step", 0},
                                         {"leading_dense_block_count", 0},
                                         {"logit_scale", 1},
                                         {"moe_every_n_layers", 0},
                                         {"nextn_predict_layers", 0},
                                         {"residual_scale", 1},
                                         {"rope.dimension_sections", 0},
                                         {"router_logit_softcapping", 0},
                                         {"use_parallel_residual", 0}};

bool is_neutral(const GgufValue& value, double neutral) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag == (neutral == 1);
  if (const auto* number = std::get_if<std::int64_t>(&value))
    return *number == 0 || static_cast<double>(*number) == neutral;
  const auto* real = std::get_if<double>(&value);
  return real != nullptr && (*real == 0 || *real == neutral);
}

RouterKind gguf_router(const GgufFile& file, const std::string& key, RouterKind fallback) {
  const auto gating = file.integer(key);
  if (!gating || *gating == 0) return fallback;
  switch (*gating) {
    case 1:
      return RouterKind::kSoftmaxThenTop;
    case 2:
      // Llama 4's weights act on the input of the experts; its files give no gating, or this one.
      return fallback == RouterKind::kSigmoidOnInput ? fallback : RouterKind::kSigmoid;
    case 3:
      return RouterKind::kTopThenSoftmax;
    default:
      file.fail(key,
                fmt::format("= {} is not supported; supported: 1 (softmax), 2 (sigmoid), 3 (softmax of the chosen)",
                            *gating));
  }
}

}  // namespace

DecoderConfig read_gguf_decoder(const GgufFile& file) {
  DecoderConfig out = resolve_gguf_positions(file);
  refuse_gguf_gaps(file, out);
  const std::string& arch = out.architecture;
  read_gguf_norm(file, out);
  const GgufTensor* embedding = file.find_tensor("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2) file.fail("token_embd.weight", "is missing or no matrix");
  out.vocab_size = embedding->shape[0];

  const bool latent = find_gguf_family(arch)->latent;  // its values have a width of their own
  const auto d_ff = gguf_layer_integers(file, arch + ".feed_forward_length", out.layers.size(), 1, std::nullopt);
  for (std::size_t i = 0; i < out.layers.size(); ++i) {
    LayerSpec& layer = out.layers[i];
    if (!layer.softmax_attention) {
      file.fail(arch + ".attention.head_count", fmt::format("or head_count_kv is 0 in layer {}", i));
    }
    const std::int64_t value_length = file.integer(arch + ".attention.value_length").value_or(layer.d_head);
    if (value_length != layer.d_head && !latent) {
      file.fail(arch + ".attention.value_length",
                fmt::format("= {} differs from key_length = {}, which is not supported", value_length, layer.d_head));
    }
    layer.d_ff = d_ff[i];
  }
  read_gguf_presence(file, out);
  return out;
}

void add_gguf_experts(const GgufFile& file, MoeSpec moe, GgufSparseLayers layers, DecoderConfig& config) {
  constexpr std::int64_t kMaxExperts = 1 << 16;
  const std::string& arch = config.architecture;
  if (file.integer(arch + ".expert_count").value_or(0) == 0) return;
  moe.n_experts = required_gguf_integer(file, arch + ".expert_count", 1, kMaxExperts);
  moe.n_chosen = required_gguf_integer(file, arch + ".expert_used_count", 1, moe.n_experts);
  moe.router = gguf_router(file, arch + ".expert_gating_func", moe.router);
  moe.renormalise = file.flag(arch + ".expert_weights_norm").value_or(moe.renormalise);
  if (const double scale = file.real(arch + ".expert_weights_scale").value_or(0); scale != 0) moe.scale = scale;
  const auto widths = gguf_layer_integers(
      file, arch + ".expert_feed_forward_length", config.layers.size(), 1,
      gguf_layer_integers(file, arch + ".feed_forward_length", config.layers.size(), 1, std::nullopt));
  for (std::int64_t i = layers.first; i < config.n_layers(); ++i) {
    if ((i + 1) % layers.step != 0) continue;
    const auto has = [&](const char* name) { return file.find_tensor(fmt::format("blk.{}.{}", i, name)) != nullptr; };
    // Their number makes a list of names below, so it is held against a tensor that the file has room for.
    const std::string up = fmt::format("blk.{}.ffn_up_exps.weight", i);
    const GgufTensor* tensor = file.find_tensor(up);
    if (tensor == nullptr || tensor->shape.front() != moe.n_experts)
      file.fail(up, fmt::format("is missing, or not of {} experts", moe.n_experts));
    moe.d_ff = widths[static_cast<std::size_t>(i)];
    moe.router_bias = has("ffn_gate_inp.bias");
    moe.expert_bias = has("ffn_up_exps.bias");
    moe.router_correction = has("exp_probs_b.bias");
    config.layers[static_cast<std::size_t>(i)].moe = moe;
  }
}

std::vector<std::string_view> gguf_expert_keys(std::vector<std::string_view> more) {
  for (const char* key :
       {"expert_count", "expert_gating_func", "expert_used_count", "expert_weights_norm", "expert_weights_scale"})
    more.emplace_back(key);
  return more;
}

double required_gguf_positive(const GgufFile& file, const std::string& key) {
  const auto value = file.real(key);
  if (!value) file.fail(key, "is missing; a number above 0 is needed");
  if (!(*value > 0) || !std::isfinite(*value))
    file.fail(key, fmt::format("= {} must be above 0", format_double(*value)));
  return *value;
}

void refuse_gguf_keys(const GgufFile& file, const std::string& architecture,
                      const std::vector<std::string_view>& honoured) {
  for (const ChangingKey& key : kChangingKeys) {
    const std::string name = fmt::format("{}.{}", architecture, key.name);
    const auto found = file.metadata().find(name);
    if (found == file.metadata().end() || is_neutral(found->second, key.neutral)) continue;
    if (std::find(honoured.begin(), honoured.end(), key.name) != honoured.end()) continue;
    file.fail(name, "is set, which this build does not support for this architecture");
  }
}

}  // namespace fathom::checkpoint
