#include <ATen/Functions.h>

#include <cmath>

#include "harness/core/error.h"
#include "harness/position/distance_bias.h"
#include "harness/position/position_scheme.h"
#include "harness/rope/alibi_slopes.h"

namespace fathom::position {
namespace {

struct GrapeAOptions {
  bool gate = false;
  void visit(OptionVisitor& v) {
    v.flag("gate", gate, "Forget gates instead of a constant decay: FoX, with gates read off the keys.");
  }
};

/// Additive GRAPE (GRAPE 2026, the section on additive group actions): logits fall by an amount per token that is
/// summed from the key to the query, so that the bias has the exact relative law b(i, j) = b(i, t) + b(t, j).
///
///   plain   bias[h, i, j] = -softplus(decay_h) (i - j)                    ALiBi with learned slopes
///   gate    bias[h, i, j] = sum over t = j+1 .. i of ln sigmoid(u_h k_t + c_h)   FoX's forget gates (Lin et al. 2025)
///
/// FoX reads its gates off the hidden state; here they are read off the head's key, which is a linear image of it, so
/// that decoding needs nothing but the cached keys.
class GrapeAScheme : public PositionScheme {
 public:
  GrapeAScheme(const SchemeContext& context, const GrapeAOptions& options) : gated_(options.gate) {
    const std::int64_t n_heads = context.spec().n_heads;
    if (gated_) {
      gate_weight_ = register_parameter("gate_weight", torch::zeros({n_heads, context.spec().d_head}));
      gate_bias_ = register_parameter("gate_bias", torch::zeros({n_heads}));
    } else {
      decay_ = register_parameter("decay", torch::zeros({n_heads}));
    }
  }

  bool has_bias() const override { return true; }
  bool needs_q_and_k() const override { return gated_; }
  bool carries_along_keys() const override { return gated_; }

  torch::Tensor block_bias(const LogitBlock& block, bool first_block) override {
    if (gated_) return gated_bias(block, first_block);
    const DistanceRange range = distance_range(block);
    const torch::Tensor values = -at::softplus(decay_).unsqueeze(1) * distances(range, decay_.options()).unsqueeze(0);
    return bias_by_distance(values.unsqueeze(0).unsqueeze(2), block, range.first);
  }

  kernels::BiasFunction bias_function() const override {
    if (gated_) return {};
    const torch::Tensor slopes = at::softplus(decay_.detach()).to(torch::kFloat32).cpu().contiguous();
    std::vector<float> all(slopes.data_ptr<float>(), slopes.data_ptr<float>() + slopes.numel());
    return bias_function_by_distance([all](std::int64_t head, const DistanceRange& range, float* out) {
      for (std::int64_t d = 0; d < range.count; ++d)
        out[d] = -all[static_cast<std::size_t>(head)] * static_cast<float>(range.first + d);
    });
  }

  /// Both forms begin as ALiBi: softplus(decay) = slope, and ln sigmoid(gate_bias) = -slope. gate_weight starts small.
  void draw_parameter(const std::string& name, torch::Tensor& values, RngStream& rng) const override {
    PositionScheme::draw_parameter(name, values, rng);
    if (name == "gate_weight") return;
    const std::vector<double> slopes = rope::alibi_slopes(values.numel());
    for (std::int64_t h = 0; h < values.numel(); ++h) {
      const double start = std::log(std::expm1(slopes[static_cast<std::size_t>(h)]));
      values.data_ptr<float>()[h] += static_cast<float>(name == "decay" ? start : -start);
    }
  }

 private:
  torch::Tensor gated_bias(const LogitBlock& block, bool first_block) {
    const std::int64_t n_heads = gate_bias_.size(0), group = n_heads / block.k.size(1);
    const torch::Tensor k = block.k.to(gate_bias_.scalar_type());
    const torch::Tensor keys = group == 1 ? k : k.repeat_interleave(group, 1);  // [batch, heads, k_len, d_head]
    const torch::Tensor log_gates =
        at::log_sigmoid(at::matmul(keys, gate_weight_.unsqueeze(-1)).squeeze(-1) + gate_bias_.unsqueeze(1));
    const torch::Tensor seen =
        log_gates.unsqueeze(2).masked_fill(visible_pairs(block).logical_not().unsqueeze(1), 0);  // [.., q_len, k_len]
    // Gates after j = total - sum up to and with j.
    const torch::Tensor sums = seen.cumsum(-1), total = sums.narrow(-1, sums.size(-1) - 1, 1);
    const torch::Tensor newer = first_block ? total : total + carried_;  // [batch, heads, q_len, 1]
    carried_ = newer;
    return newer - sums;
  }

  bool gated_;
  torch::Tensor decay_;        // [n_heads]
  torch::Tensor gate_weight_;  // [n_heads, d_head]
  torch::Tensor gate_bias_;    // [n_heads]
  torch::Tensor carried_;      // log gates of the newer keys, [batch, heads, q_len, 1]
};

std::shared_ptr<PositionScheme> make_grape_a(const SchemeContext& context) {
  GrapeAOptions options;
  bind_options(options, OptionSource("position scheme grape_a", context.spec().position.options));
  return std::make_shared<GrapeAScheme>(context, options);
}

std::vector<OptionDescription> describe_grape_a() {
  return describe_options(GrapeAOptions{});
}

}  // namespace

PositionSchemeEntry schemes::grape_a_entry() {
  return {{"grape_a", 1, "A learned decay per head, constant or by forget gates (FoX).", "GRAPE 2026, additive form",
           false, false, &describe_grape_a},
          &make_grape_a};
}

}  // namespace fathom::position
