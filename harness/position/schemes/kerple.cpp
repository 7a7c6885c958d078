#include <ATen/Functions.h>

#include <cmath>

#include "harness/position/distance_bias.h"
#include "harness/position/position_scheme.h"
#include "harness/rope/alibi_slopes.h"

namespace fathom::position {
namespace {

constexpr double kKerpleLeast = 0.01;        // the authors' bound on both parameters
constexpr double kKerpleMostExponent = 2.0;  // a kernel of a larger power is not positive definite

struct KerpleOptions {
  std::string kind = "log";
  void visit(OptionVisitor& v) { v.choice("kind", kind, {"log", "power"}, "-p ln(1 + a d), or -a d^p."); }
};

KerpleOptions kerple_options(const SchemeContext& context) {
  KerpleOptions options;
  bind_options(options, OptionSource("position scheme kerple", context.spec().position.options));
  return options;
}

/// Value within the bounds, gradient as if there were none: a parameter that has met a bound can come back.
torch::Tensor within_kerple_bounds(const torch::Tensor& x, double most) {
  return x + (x.clamp(kKerpleLeast, most) - x).detach();
}

/// Kernelised relative positions (Chi et al. 2022, section 4), d = i - j, p and a learned for each head:
///
///   log     bias[h, d] = -p_h ln(1 + a_h d)
///   power   bias[h, d] = -a_h d^p_h,  p_h <= 2
class KerpleScheme : public PositionScheme {
 public:
  explicit KerpleScheme(const SchemeContext& context) : is_log_(kerple_options(context).kind == "log") {
    p_ = register_parameter("p", torch::ones({context.spec().n_heads}));
    a_ = register_parameter("a", torch::ones({context.spec().n_heads}));
  }

  bool has_bias() const override { return true; }

  torch::Tensor block_bias(const LogitBlock& block, bool) override {
    const DistanceRange range = distance_range(block);
    const torch::Tensor d = distances(range, p_.options()).unsqueeze(0);  // [1, count]
    const torch::Tensor p = p_in_bounds().unsqueeze(1), a = a_in_bounds().unsqueeze(1);
    // d^p has the derivative d^p ln d in p, which is 0 * -infinity at d = 0.
    const torch::Tensor values = is_log_ ? -p * at::log1p(a * d) : -a * at::pow(d.clamp_min(1), p) * d.gt(0);
    return bias_by_distance(values.unsqueeze(0).unsqueeze(2), block, range.first);
  }

  kernels::BiasFunction bias_function() const override {
    const auto numbers = [](const torch::Tensor& x) {
      const torch::Tensor on_host = x.detach().to(torch::kFloat32).cpu().contiguous();
      return std::vector<float>(on_host.data_ptr<float>(), on_host.data_ptr<float>() + on_host.numel());
    };
    const std::vector<float> all_p = numbers(p_in_bounds()), all_a = numbers(a_in_bounds());
    return bias_function_by_distance(
        [all_p, all_a, is_log = is_log_](std::int64_t head, const DistanceRange& range, float* out) {
          const float p = all_p[static_cast<std::size_t>(head)], a = all_a[static_cast<std::size_t>(head)];
          for (std::int64_t n = 0; n < range.count; ++n) {
            const auto d = static_cast<float>(range.first + n);
            out[n] = is_log ? -p * std::log1p(a * d) : -a * std::pow(d, p);
          }
        });
  }

  /// Heads of several reaches to begin with: log p = 2 ... 1/4 with a = 1; power p = 1 with ALiBi's slopes.
  void draw_parameter(const std::string& name, torch::Tensor& values, RngStream& rng) const override {
    const std::int64_t n_heads = values.numel();
    const std::vector<double> slopes = rope::alibi_slopes(n_heads);
    for (std::int64_t h = 0; h < n_heads; ++h) {
      const double place = n_heads == 1 ? 0 : static_cast<double>(h) / static_cast<double>(n_heads - 1);
      double start = 1;
      if (is_log_ && name == "p") start = std::pow(2.0, 1 - 3 * place);
      if (!is_log_ && name == "a") start = slopes[static_cast<std::size_t>(h)];
      values.data_ptr<float>()[h] = static_cast<float>(start * (1 + 0.02 * rng.normal()));
    }
  }

 private:
  torch::Tensor p_in_bounds() const { return within_kerple_bounds(p_, is_log_ ? 1e30 : kKerpleMostExponent); }
  torch::Tensor a_in_bounds() const { return within_kerple_bounds(a_, 1e30); }

  bool is_log_;
  torch::Tensor p_, a_;  // [n_heads]
};

std::shared_ptr<PositionScheme> make_kerple(const SchemeContext& context) {
  return std::make_shared<KerpleScheme>(context);
}

std::vector<OptionDescription> describe_kerple() {
  return describe_options(KerpleOptions{});
}

}  // namespace

PositionSchemeEntry schemes::kerple_entry() {
  return {{"kerple", 1, "A learned logarithm or power of the distance, per head.", "Chi et al. 2022, section 4", false,
           false, &describe_kerple},
          &make_kerple};
}

}  // namespace fathom::position
