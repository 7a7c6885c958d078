#include <ATen/Functions.h>

#include <utility>

#include "harness/position/position_scheme.h"
#include "harness/rope/alibi_slopes.h"

namespace fathom::position {
namespace {

struct AlibiOptions {
  double max_bias = 8;
  double scale = 1;
  void visit(OptionVisitor& v) {
    v.real("max_bias", max_bias, {1e-6, 1024}, "Exponent of the last head's slope, 2^-max_bias; 8 in the paper.");
    v.real("scale", scale, {0, 1e6}, "Multiplies every slope; trained length / tested length interpolates positions.");
  }
};

std::vector<float> scaled_alibi_slopes(const SchemeContext& context) {
  AlibiOptions options;
  bind_options(options, OptionSource("position scheme alibi", context.spec().position.options));
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

std::shared_ptr<PositionScheme> make_alibi(const SchemeContext& context) {
  return std::make_shared<AlibiScheme>(scaled_alibi_slopes(context));
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
