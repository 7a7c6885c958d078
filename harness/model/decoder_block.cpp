#include "harness/model/decoder_block.h"

#include <ATen/Functions.h>

#include <cmath>
#include <utility>

#include "harness/core/error.h"
#include "harness/model/linear_attention.h"
#include "harness/model/mixture.h"
#include "harness/model/short_convolution.h"

namespace fathom::model {
namespace {

using checkpoint::QkNorm;
using torch::Tensor;

LinearParameters find_linear(const TensorLookup& find, const std::string& name) {
  return {find(name + ".weight"), find(name + ".bias")};
}

NormParameters find_norm(const TensorLookup& find, const std::string& name) {
  return {find(name + ".weight"), find(name + ".bias")};
}

MlpParameters find_mlp(const TensorLookup& find, const std::string& name) {
  return {find_linear(find, name + ".gate"), find_linear(find, name + ".up"), find_linear(find, name + ".down")};
}

Tensor apply_linear(const LinearParameters& parameters, const Tensor& x) {
  return ops::linear(x, parameters.weight, parameters.bias);
}

/// Normalises [batch, seq, heads, d_head].
Tensor qk_normed(const checkpoint::DecoderConfig& config, const NormParameters& norm, const Tensor& x) {
  switch (config.qk_norm) {
    case QkNorm::kNone:
      return x;
    case QkNorm::kUnit:
      return ops::norm(x, checkpoint::NormKind::kRms, {}, {}, config.norm_eps);
    case QkNorm::kPerHead:
      return ops::norm(x, config.norm, norm.weight, norm.bias, config.norm_eps);
    case QkNorm::kPerHeadOwn:
      return ops::norm(x, config.norm, {}, {}, config.norm_eps) * norm.weight;
    case QkNorm::kWhole:
      return ops::norm(x.flatten(2), config.norm, norm.weight, norm.bias, config.norm_eps).view(x.sizes());
  }
  throw InvariantError("unknown norm of queries and keys");
}

/// x with zeros behind the last dimension up to `width`.
Tensor padded(const Tensor& x, std::int64_t width) {
  return x.size(-1) == width ? x : at::constant_pad_nd(x, {0, width - x.size(-1)});
}

void project_latent(const BlockParameters& block, ops::AttentionCall& call) {
  const checkpoint::LayerSpec& spec = *call.spec;
  const checkpoint::LatentSpec& latent = *spec.latent;
  const Tensor& h = call.hidden;
  const std::int64_t batch = h.size(0), seq = h.size(1), d_nope = spec.d_head - latent.d_rope;
  const auto normed = [&](const Tensor& x, const NormParameters& norm) {
    return ops::norm(x, checkpoint::NormKind::kRms, norm.weight, norm.bias, latent.norm_eps);
  };
  const Tensor q = latent.q_rank > 0 ? apply_linear(block.q_b, normed(apply_linear(block.q_a, h), block.q_a_norm))
                                     : apply_linear(block.q, h);
  call.q = q.view({batch, seq, spec.n_heads, spec.d_head});
  const Tensor compressed = apply_linear(block.kv_a, h);  // [batch, seq, kv_rank + d_rope]
  const Tensor kv = apply_linear(block.kv_b, normed(compressed.narrow(2, 0, latent.kv_rank), block.kv_a_norm))
                        .view({batch, seq, spec.n_heads, d_nope + latent.d_value});
  const Tensor k_rope = compressed.narrow(2, latent.kv_rank, latent.d_rope)
                            .unsqueeze(2)
                            .expand({batch, seq, spec.n_heads, latent.d_rope});
  call.k = at::cat({kv.narrow(3, 0, d_nope), k_rope}, 3);
  call.v = padded(kv.narrow(3, d_nope, latent.d_value), spec.d_head);
}

/// Queries, keys and values before rotation. Values narrower than the keys are padded with zeros.
void project_qkv(const checkpoint::DecoderConfig& config, const BlockParameters& block, ops::AttentionCall& call) {
  const checkpoint::LayerSpec& spec = *call.spec;
  call.sinks = block.sinks;
  if (spec.latent) return project_latent(block, call);
  const std::int64_t batch = call.hidden.size(0), seq = call.hidden.size(1);
  // The remembered inputs of the convolutions stand side by side: keys, values, attention, MLP.
  const auto heads = [&](const LinearParameters& parameters, std::int64_t n_heads, const Tensor& conv,
                         std::int64_t conv_offset) {
    Tensor x = apply_linear(parameters, call.hidden);
    if (conv.defined()) x = short_convolution(call, x, conv, conv_offset);
    const Tensor clipped = config.qkv_clip > 0 ? x.clamp(-config.qkv_clip, config.qkv_clip) : x;
    return padded(clipped.view({batch, seq, n_heads, -1}), spec.d_head);
  };
  call.q = heads(block.q, spec.n_heads, {}, 0);
  call.k = heads(block.k, spec.n_kv_heads, block.k_conv, 0);
  call.v = heads(block.v, spec.n_kv_heads, block.v_conv, spec.n_kv_heads * spec.d_head);
  if (spec.qk_norm && !spec.linear) {
    call.q = qk_normed(config, block.q_norm, call.q);
    call.k = qk_normed(config, block.k_norm, call.k);
  }
}

/// [batch, seq, n_heads * d_head] back to [batch, seq, d_model].
Tensor project_out(const checkpoint::LayerSpec& spec, const BlockParameters& block, const Tensor& out) {
  if (!spec.latent || spec.latent->d_value == spec.d_head) return apply_linear(block.o, out);
  const Tensor by_head = out.view({out.size(0), out.size(1), spec.n_heads, spec.d_head});
  return apply_linear(block.o, by_head.narrow(3, 0, spec.latent->d_value).flatten(2));
}

/// No softmax, but a norm and a gate behind it.
Tensor attend_linearly(const checkpoint::DecoderConfig& config, const BlockParameters& block,
                       ops::AttentionCall& call) {
  const checkpoint::LayerSpec& spec = *call.spec;
  const Tensor gate = apply_linear(block.out_gate, call.hidden).sigmoid();
  if (spec.linear->kind == checkpoint::LinearKind::kMlstm) {
    const auto capped = [&](const LinearParameters& parameters) {
      const Tensor x = apply_linear(parameters, call.hidden);
      const double cap = spec.linear->gate_softcap;
      return cap > 0 ? (x / cap).tanh() * cap : x;
    };
    const Tensor out = mlstm_attention(call, capped(block.input_gate), capped(block.forget_gate))
                           .view({call.hidden.size(0), call.hidden.size(1), spec.n_heads, spec.d_head});
    const Tensor normed = ops::norm(out, checkpoint::NormKind::kLayer, {}, {}, spec.linear->norm_eps).flatten(2);
    return apply_linear(block.o, gate * (normed * block.out_norm.weight));
  }
  const auto activated = [&](const Tensor& x) { return ops::activate(x, config.activation); };
  call.q = activated(call.q);
  call.k = activated(call.k);
  call.v = activated(call.v);
  const Tensor normed = ops::norm(lightning_attention(call), checkpoint::NormKind::kRms, block.out_norm.weight,
                                  block.out_norm.bias, spec.linear->norm_eps);
  return apply_linear(block.o, normed * gate);
}

struct DenseProjections {
  LinearParameters q, k, v, o;
};

/// Attention without a mask, of the first tensor to the second.
Tensor dense_attention(const checkpoint::LayerSpec& spec, const DenseProjections& projections,
                       const std::pair<Tensor, Tensor>& from_to, const Tensor& bias) {
  const auto heads = [&](const LinearParameters& parameters, const Tensor& x) {
    return apply_linear(parameters, x).view({x.size(0), x.size(1), spec.n_heads, spec.d_head}).transpose(1, 2);
  };
  const double scale = spec.softmax_scale.value_or(1 / std::sqrt(static_cast<double>(spec.d_head)));
  const Tensor q = heads(projections.q, from_to.first), k = heads(projections.k, from_to.second);
  Tensor scores = at::matmul(q, k.transpose(2, 3)) * scale;
  if (bias.defined()) scores = scores + bias;
  const Tensor out = at::matmul(scores.softmax(-1), heads(projections.v, from_to.second));  // [batch, heads, seq, d]
  return apply_linear(projections.o, out.transpose(1, 2).flatten(2));
}

}  // namespace

BlockParameters block_parameters(const checkpoint::LayerSpec& spec, const TensorLookup& find) {
  BlockParameters out;
  out.attention_norm = find_norm(find, "attention_norm");
  out.attention_post_norm = find_norm(find, "attention_post_norm");
  out.mlp_norm = find_norm(find, "mlp_norm");
  out.mlp_post_norm = find_norm(find, "mlp_post_norm");
  out.q_norm = find_norm(find, "attention.q_norm");
  out.k_norm = find_norm(find, "attention.k_norm");
  out.q = find_linear(find, "attention.q");
  out.k = find_linear(find, "attention.k");
  out.v = find_linear(find, "attention.v");
  out.o = find_linear(find, "attention.o");
  out.q_a = find_linear(find, "attention.q_a");
  out.q_b = find_linear(find, "attention.q_b");
  out.kv_a = find_linear(find, "attention.kv_a");
  out.kv_b = find_linear(find, "attention.kv_b");
  out.q_a_norm = find_norm(find, "attention.q_a_norm");
  out.kv_a_norm = find_norm(find, "attention.kv_a_norm");
  out.out_norm = find_norm(find, "attention.out_norm");
  out.out_gate = find_linear(find, "attention.out_gate");
  out.input_gate = find_linear(find, "attention.input_gate");
  out.forget_gate = find_linear(find, "attention.forget_gate");
  out.k_conv = find("attention.k_conv");
  out.v_conv = find("attention.v_conv");
  out.attention_conv = find("attention_conv");
  out.mlp_conv = find("mlp_conv");
  out.mlp_scale = find("mlp.scale");
  out.sinks = find("attention.sinks");
  out.cross_norm = find_norm(find, "cross_norm");
  out.cross_q = find_linear(find, "cross.q");
  out.cross_k = find_linear(find, "cross.k");
  out.cross_v = find_linear(find, "cross.v");
  out.cross_o = find_linear(find, "cross.o");
  if (!spec.moe) {
    out.mlp = find_mlp(find, "mlp");
    return out;
  }
  out.moe.router = find_linear(find, "mlp.router");
  out.moe.correction = find("mlp.router_correction");
  out.moe.scale = out.mlp_scale;
  out.moe.shared = find_mlp(find, "mlp.shared");
  out.moe.shared_gate = find_linear(find, "mlp.shared_gate");
  for (std::int64_t e = 0; e < spec.moe->n_experts; ++e)
    out.moe.experts.push_back(find_mlp(find, "mlp.experts." + std::to_string(e)));
  for (std::int64_t e = 0; e < spec.moe->n_always; ++e)
    out.moe.experts.push_back(find_mlp(find, "mlp.always." + std::to_string(e)));
  return out;
}

Tensor attend(const checkpoint::DecoderConfig& config, const BlockParameters& block, ops::AttentionCall& call) {
  project_qkv(config, block, call);
  if (call.spec->linear) return attend_linearly(config, block, call);
  const Tensor out = project_out(*call.spec, block, ops::attention(call));
  if (!block.attention_conv.defined()) return out;
  return short_convolution(call, out, block.attention_conv, 2 * call.spec->n_kv_heads * call.spec->d_head);
}

Tensor attend_everywhere(const checkpoint::LayerSpec& spec, const BlockParameters& block, const Tensor& h,
                         const Tensor& bias) {
  return dense_attention(spec, {block.q, block.k, block.v, block.o}, {h, h}, bias);
}

Tensor attend_across(const checkpoint::LayerSpec& spec, const BlockParameters& block, const Tensor& h,
                     const Tensor& encoded) {
  return dense_attention(spec, {block.cross_q, block.cross_k, block.cross_v, block.cross_o}, {h, encoded}, {});
}

Tensor feed_forward(const checkpoint::DecoderConfig& config, const BlockParameters& block,
                    const ops::AttentionCall& call, const Tensor& h) {
  const checkpoint::LayerSpec& spec = *call.spec;
  Tensor out;
  if (spec.moe) {
    out = mixture_of_experts(config, *spec.moe, block.moe, h);
  } else {
    out = mlp(config.gated_mlp, config.activation, block.mlp, h);
    if (block.mlp_scale.defined()) out = out * block.mlp_scale;
  }
  if (!block.mlp_conv.defined()) return out;
  return short_convolution(call, out, block.mlp_conv, 2 * spec.n_kv_heads * spec.d_head + config.d_model);
}

}  // namespace fathom::model
