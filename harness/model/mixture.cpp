#include "harness/model/mixture.h"

#include <ATen/Functions.h>

#include <limits>
#include <tuple>

#include "harness/core/error.h"
#include "harness/model/ops.h"

namespace fathom::model {
namespace {

using checkpoint::MoeSpec;
using checkpoint::RouterKind;
using torch::Tensor;

Tensor mixture_linear(const LinearParameters& parameters, const Tensor& x) {
  return ops::linear(x, parameters.weight, parameters.bias);
}

/// Scores for the choice, [tokens, experts], -infinity outside the best groups.
Tensor in_best_groups(const MoeSpec& moe, const Tensor& scores) {
  if (moe.n_chosen_groups >= moe.n_groups) return scores;
  const std::int64_t size = moe.n_experts / moe.n_groups;
  const Tensor by_group = scores.view({-1, moe.n_groups, size});
  const Tensor group_scores = std::get<0>(by_group.topk(moe.group_best, -1)).sum(-1);  // [tokens, groups]
  const Tensor best = std::get<1>(group_scores.topk(moe.n_chosen_groups, -1));
  const Tensor hidden = at::ones_like(group_scores).scatter(1, best, 0).to(torch::kBool);
  return by_group.masked_fill(hidden.unsqueeze(-1), -std::numeric_limits<float>::infinity()).view(scores.sizes());
}

struct Choice {
  Tensor experts;  ///< [tokens, n_chosen] int64
  Tensor weights;  ///< [tokens, n_chosen] float32
};

Choice choose_experts(const MoeSpec& moe, const MoeParameters& parameters, const Tensor& h) {
  const Tensor logits = mixture_linear(parameters.router, h).to(torch::kFloat32);  // [tokens, experts]
  Choice choice;
  if (moe.router == RouterKind::kTopThenSoftmax || moe.router == RouterKind::kSigmoidOnInput) {
    std::tie(choice.weights, choice.experts) = logits.topk(moe.n_chosen, -1);
    choice.weights = moe.router == RouterKind::kTopThenSoftmax ? choice.weights.softmax(-1) : choice.weights.sigmoid();
    return choice;
  }
  const Tensor all_scores = moe.router == RouterKind::kSigmoid ? logits.sigmoid() : logits.softmax(-1);
  const Tensor scores = all_scores.narrow(1, 0, moe.n_experts);
  const Tensor for_choice = parameters.correction.defined() ? scores + parameters.correction : scores;
  choice.experts = std::get<1>(in_best_groups(moe, for_choice).topk(moe.n_chosen, -1));
  if (moe.n_always > 0) {
    const Tensor always = at::arange(moe.n_experts, moe.n_experts + moe.n_always, choice.experts.options());
    choice.experts = at::cat({choice.experts, always.expand({h.size(0), moe.n_always})}, 1);
  }
  choice.weights = all_scores.gather(1, choice.experts);
  if (moe.renormalise) choice.weights = choice.weights / choice.weights.sum(-1, true);
  if (moe.scale != 1) choice.weights = choice.weights * moe.scale;
  if (parameters.scale.defined()) choice.weights = choice.weights * parameters.scale;
  return choice;
}

/// gpt-oss: both halves cut off, and one added to the linear one.
Tensor clamped_mlp(const MoeSpec& moe, const MlpParameters& parameters, const Tensor& h) {
  const Tensor gate = mixture_linear(parameters.gate, h).clamp_max(moe.clamp);
  const Tensor up = mixture_linear(parameters.up, h).clamp(-moe.clamp, moe.clamp);
  return mixture_linear(parameters.down, (up + 1) * gate * (gate * moe.clamp_sharpness).sigmoid());
}

}  // namespace

Tensor mlp(bool gated, checkpoint::Activation activation, const MlpParameters& parameters, const Tensor& h) {
  const Tensor up = mixture_linear(parameters.up, h);  // [.., d_ff]
  const Tensor inner =
      gated ? ops::gated(mixture_linear(parameters.gate, h), up, activation) : ops::activate(up, activation);
  return mixture_linear(parameters.down, inner);
}

Tensor mixture_of_experts(const checkpoint::DecoderConfig& config, const MoeSpec& moe, const MoeParameters& parameters,
                          const Tensor& h) {
  const Tensor tokens = h.reshape({-1, h.size(-1)});
  const Choice choice = choose_experts(moe, parameters, tokens);
  Tensor out = at::zeros_like(tokens, torch::kFloat32);
  for (std::int64_t e = 0; e < moe.n_experts + moe.n_always; ++e) {
    const Tensor taken = (choice.experts == e).nonzero();  // [n, 2]: token, slot
    if (taken.size(0) == 0) continue;
    const Tensor token = taken.select(1, 0);
    const Tensor weight = choice.weights.index({token, taken.select(1, 1)}).unsqueeze(1);
    const MlpParameters& expert = parameters.experts[static_cast<std::size_t>(e)];
    Tensor x = tokens.index_select(0, token);
    if (moe.router == RouterKind::kSigmoidOnInput) x = x * weight;
    Tensor y = moe.clamp > 0 ? clamped_mlp(moe, expert, x) : mlp(config.gated_mlp, config.activation, expert, x);
    if (moe.router != RouterKind::kSigmoidOnInput) y = y * weight;
    out = out.index_add(0, token, y.to(torch::kFloat32));
  }
  if (moe.d_ff_shared > 0) {
    Tensor shared = mlp(config.gated_mlp, config.activation, parameters.shared, tokens);
    if (moe.shared_gate) shared = shared * mixture_linear(parameters.shared_gate, tokens).sigmoid();
    out = out + shared;
  }
  return out.view(h.sizes());
}

}  // namespace fathom::model
