#include <ATen/Functions.h>
#include <c10/util/BFloat16.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "harness/position/position_scheme.h"
#include "harness/rope/alibi_slopes.h"

namespace fathom::position {
namespace {

struct AlibiOptions {
  double max_bias = 8;
  double scale = 1;
  bool before_scale = false;
  void visit(OptionVisitor& v) {
    v.real("max_bias", max_bias, {1e-6, 1024}, "Exponent of the last head's slope, 2^-max_bias; 8 in the paper.");
    v.real("scale", scale, {0, 1e6}, "Multiplies every slope; trained length / tested length interpolates positions.");
    v.flag("before_scale", before_scale,
           "Falcon: slope * key position, rounded to bf16, is added before the softmax scale multiplies the logits.");
  }
};

AlibiOptions alibi_options(const SchemeContext& context) {
  AlibiOptions options;
  bind_options(options, OptionSource("position scheme alibi", context.spec().position.options));
  return options;
}

std::vector<float> scaled_alibi_slopes(const SchemeContext& context, const AlibiOptions& options) {
  std::vector<float> slopes;
  for (const double slope : rope::alibi_slopes(context.spec().n_heads, options.max_bias)) {
    slopes.push_back(static_cast<float>(slope * options.scale));
  }
  return slopes;
}

/// bias[h, i, j] = -slope[h] * (q_positions[i] - k_positions[j]), added after the softmax scale (Press et al. 2022,
/// section 3). Kept in float32: bf16 cannot tell neighbours apart beyond distance 256.
class AlibiScheme : public PositionScheme {
 public:
  explicit AlibiScheme(std::vector<float> slopes) : slopes_(std::move(slopes)) {}

  bool has_bias() const override { return true; }

  torch::Tensor block_bias(const LogitBlock& block, bool) override {
    const torch::Tensor distance =
        block.q_positions.unsqueeze(2) - block.k_positions.unsqueeze(1);  // [batch, q_len, k_len]
    const torch::Tensor slopes = at::tensor(slopes_).view({1, -1, 1, 1}).to(distance.device());
    return distance.unsqueeze(1).to(torch::kFloat32) * -slopes;
  }

  kernels::BiasFunction bias_function() const override {
    return [slopes = slopes_](std::int64_t head, const std::int32_t* q_positions, std::int64_t n_q,
                              const std::int32_t* k_positions, std::int64_t n_k, float* bias, std::int64_t stride) {
      const float slope = slopes[static_cast<std::size_t>(head)];
      for (std::int64_t i = 0; i < n_q; ++i) {
        for (std::int64_t j = 0; j < n_k; ++j)
          bias[i * stride + j] = slope * static_cast<float>(k_positions[j] - q_positions[i]);
      }
    };
  }

 private:
  std::vector<float> slopes_;  // [n_heads]
};

/// bias[h, i, j] = softmax_scale * bf16(bf16(slope[h]) * bf16(k_positions[j])), as Falcon has it: the same for all
/// queries, which the softmax cannot tell from a distance but for the rounding, and sqrt(d_head) times weaker.
class FalconAlibiScheme : public PositionScheme {
 public:
  FalconAlibiScheme(std::vector<float> slopes, double softmax_scale)
      : slopes_(std::move(slopes)), softmax_scale_(softmax_scale) {}

  bool has_bias() const override { return true; }

  torch::Tensor block_bias(const LogitBlock& block, bool) override {
    const torch::Tensor by_key = key_bias(block.k_positions).unsqueeze(2);  // [batch, heads, 1, k_len]
    return by_key.expand({by_key.size(0), by_key.size(1), block.q_positions.size(1), by_key.size(3)});
  }

  kernels::BiasFunction bias_function() const override {
    return [slopes = slopes_, scale = static_cast<float>(softmax_scale_)](
               std::int64_t head, const std::int32_t*, std::int64_t n_q, const std::int32_t* k_positions,
               std::int64_t n_k, float* bias, std::int64_t stride) {
      const auto rounded = [](float x) { return static_cast<float>(c10::BFloat16(x)); };
      const float slope = rounded(slopes[static_cast<std::size_t>(head)]);
      for (std::int64_t j = 0; j < n_k; ++j)
        bias[j] = rounded(slope * rounded(static_cast<float>(k_positions[j]))) * scale;
      for (std::int64_t i = 1; i < n_q; ++i) std::copy(bias, bias + n_k, bias + i * stride);
    };
  }

 private:
  torch::Tensor key_bias(const torch::Tensor& k_positions) const {
    const torch::Tensor slopes = at::tensor(slopes_).view({1, -1, 1}).to(k_positions.device(), torch::kBFloat16);
    return (slopes * k_positions.unsqueeze(1).to(torch::kBFloat16)).to(torch::kFloat32) * softmax_scale_;
  }

  std::vector<float> slopes_;  // [n_heads]
  double softmax_scale_;
};

std::shared_ptr<PositionScheme> make_alibi(const SchemeContext& context) {
  const AlibiOptions options = alibi_options(context);
  std::vector<float> slopes = scaled_alibi_slopes(context, options);
  if (!options.before_scale) return std::make_shared<AlibiScheme>(std::move(slopes));
  const double scale = context.spec().softmax_scale.value_or(1 / std::sqrt(static_cast<double>(context.spec().d_head)));
  return std::make_shared<FalconAlibiScheme>(std::move(slopes), scale);
}

std::vector<OptionDescription> describe_alibi() {
  return describe_options(AlibiOptions{});
}

}  // namespace

PositionSchemeEntry schemes::alibi_entry() {
  return {{"alibi", 1, "Per-head linear distance penalty on attention logits.", "Press et al. 2022, section 3", false,
           false, &describe_alibi},
          &make_alibi};
}

}  // namespace fathom::position
