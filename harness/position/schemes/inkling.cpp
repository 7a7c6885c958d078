#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>

#include "harness/core/error.h"
#include "harness/position/distance_bias.h"
#include "harness/position/position_scheme.h"

namespace fathom::position {
namespace {

struct InklingOptions {
  std::int64_t d_rel = 16;
  std::optional<std::int64_t> extent;
  std::optional<std::int64_t> log_scaling_floor;
  double log_scaling_alpha = 0.1;
  void visit(OptionVisitor& v) {
    v.integer("d_rel", d_rel, {1, 1024}, "Channels of a head's relative state.");
    v.optional_integer("extent", extent, {1, 1 << 20},
                       "Distances with a bias, 0 .. extent - 1; auto is the layer's window, else 1024.");
    v.optional_integer("log_scaling_floor", log_scaling_floor, {1, 1LL << 40},
                       "Positions from here on sharpen queries and bias, in layers without a window; auto is never.");
    v.real("log_scaling_alpha", log_scaling_alpha, {0, 100}, "How much: 1 + alpha ln((position + 1) / floor).");
  }
};

constexpr std::int64_t kInklingExtent = 1024;

/// The options as they hold for one layer.
struct InklingShape {
  std::int64_t d_rel, extent;
  std::int64_t log_scaling_floor;  ///< 0 = none
  double log_scaling_alpha;
};

InklingShape inkling_shape(const SchemeContext& context) {
  InklingOptions options;
  bind_options(options, OptionSource("position scheme inkling", context.spec().position.options));
  const std::optional<std::int64_t>& window = context.spec().window;
  return {options.d_rel, options.extent.value_or(window.value_or(kInklingExtent)),
          window ? 0 : options.log_scaling_floor.value_or(0), options.log_scaling_alpha};
}

/// A bias that each query's hidden state x_i chooses from learned curves over the distance (Hugging Face
/// models/inkling):
///
///   r_i = W x_i, [n_heads, d_rel]
///   bias[h, i, j] = tau_i sum_c r_i[h, c] curves[c, i - j]   for 0 <= i - j < extent, exactly 0 beyond
///   tau_i = 1 + alpha ln(max((i + 1) / floor, 1)), which multiplies the query too; 1 without log scaling
///
/// Inkling's softmax scale is 1 / d_head, because its queries and keys are normalised; that is the layer's
/// softmax_scale, not this scheme's.
class InklingScheme : public PositionScheme {
 public:
  explicit InklingScheme(const SchemeContext& context)
      : shape_(inkling_shape(context)), n_heads_(context.spec().n_heads) {
    state_ = register_parameter("state", torch::zeros({n_heads_ * shape_.d_rel, context.config->d_model}));
    curves_ = register_parameter("curves", torch::zeros({shape_.d_rel, shape_.extent}));
  }

  bool has_bias() const override { return true; }
  bool needs_hidden() const override { return true; }

  torch::Tensor block_bias(const LogitBlock& block, bool) override {
    const DistanceRange range = distance_range(block);
    const std::int64_t count = std::min(range.count, shape_.extent - range.first);
    if (count <= 0) {
      return at::zeros({1, n_heads_, block.q_positions.size(1), block.k_positions.size(1)}, curves_.options());
    }
    const torch::Tensor x = block.q_hidden.to(state_.scalar_type());  // [batch, q_len, d_model]
    const torch::Tensor r = at::linear(x, state_)
                                .view({x.size(0), x.size(1), n_heads_, shape_.d_rel})
                                .transpose(1, 2);  // [batch, n_heads, q_len, d_rel]
    torch::Tensor values = at::matmul(r, curves_.narrow(1, range.first, count));
    const torch::Tensor tau = log_scaling(block.q_positions);
    if (tau.defined()) values = values * tau.unsqueeze(1).unsqueeze(-1);
    return bias_by_distance(values, block, range.first);
  }

  torch::Tensor query_scale(const torch::Tensor& positions) override {
    const torch::Tensor temperature = PositionScheme::query_scale(positions), tau = log_scaling(positions);
    if (!tau.defined()) return temperature;
    return temperature.defined() ? temperature * tau : tau;
  }

  /// W as any matrix of the layer; the curves start almost flat.
  void draw_parameter(const std::string& name, torch::Tensor& values, RngStream& rng) const override {
    if (name != "state") {
      PositionScheme::draw_parameter(name, values, rng);
      return;
    }
    const double bound = 1 / std::sqrt(static_cast<double>(values.size(1)));
    float* out = values.data_ptr<float>();
    for (std::int64_t i = 0; i < values.numel(); ++i)
      out[i] = static_cast<float>(bound * (2 * rng.uniform_double() - 1));
  }

 private:
  /// tau, [batch, seq] float32, or undefined where it is 1 everywhere by configuration.
  torch::Tensor log_scaling(const torch::Tensor& positions) const {
    if (shape_.log_scaling_floor == 0) return {};
    const torch::Tensor ratio = (positions + 1).to(torch::kFloat64) / static_cast<double>(shape_.log_scaling_floor);
    return (ratio.clamp_min(1).log() * shape_.log_scaling_alpha + 1).to(torch::kFloat32);
  }

  InklingShape shape_;
  std::int64_t n_heads_;
  torch::Tensor state_;   // [n_heads * d_rel, d_model]
  torch::Tensor curves_;  // [d_rel, extent]
};

std::shared_ptr<PositionScheme> make_inkling(const SchemeContext& context) {
  return std::make_shared<InklingScheme>(context);
}

std::vector<OptionDescription> describe_inkling() {
  return describe_options(InklingOptions{});
}

}  // namespace

PositionSchemeEntry schemes::inkling_entry() {
  return {{"inkling", 1, "A learned bias over the distance that each query chooses, exactly 0 beyond its extent.",
           "Hugging Face models/inkling", false, false, &describe_inkling},
          &make_inkling};
}

}  // namespace fathom::position
