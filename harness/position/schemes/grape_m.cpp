#include <ATen/Functions.h>
#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "harness/core/error.h"
#include "harness/position/position_scheme.h"

namespace fathom::position {
namespace {

constexpr double kGrapeStartNoise = 0.02;
// A plane that has shrunk to nothing turns by nothing; this keeps sin(s x) / s finite there.
constexpr double kGrapeLeastArea = 1e-12;

struct GrapeMOptions {
  std::optional<std::int64_t> planes;
  double base = 10000;
  void visit(OptionVisitor& v) {
    v.optional_integer("planes", planes, {1, 4096},
                       "Planes per head, one in each equal part of its channels; auto is one per pair of channels.");
    v.real("base", base, {1.0001, 1e12}, "Frequency of plane p is base^(-p / planes), times the learned area.");
  }
};

GrapeMOptions grape_m_options(const SchemeContext& context) {
  GrapeMOptions options;
  bind_options(options, OptionSource("position scheme grape_m", context.spec().position.options));
  const std::int64_t d_head = context.spec().d_head;
  const std::int64_t planes = options.planes.value_or(d_head / 2);
  if (planes < 1 || d_head % planes != 0 || d_head / planes < 2) {
    throw ConfigError(
        fmt::format("position scheme grape_m: planes = {} must divide d_head = {} into parts of at least 2 channels",
                    planes, d_head));
  }
  options.planes = planes;
  return options;
}

/// Multiplicative GRAPE (GRAPE 2026, the section on multiplicative group actions): every plane p of a head has a
/// learned rank-2 generator on its own part of the channels, and both queries and keys at position n are multiplied by
///
///   G(n) = exp(n w L) = I + sin(n w s) / s L + (1 - cos(n w s)) / s^2 L^2,
///   L = a b^T - b a^T,  s = sqrt(|a|^2 |b|^2 - (a b)^2),  w = base^(-p / planes).
///
/// Parts do not overlap, so the generators commute and G(m)^T G(n) = G(n - m) holds exactly. With parts of two channels
/// and a, b the unit vectors it is RoPE, where it starts; larger parts let the planes tilt. Heads that share a key
/// share its planes.
class GrapeMScheme : public PositionScheme {
 public:
  explicit GrapeMScheme(const SchemeContext& context)
      : options_(grape_m_options(context)), d_head_(context.spec().d_head) {
    const std::int64_t n_kv_heads = context.spec().n_kv_heads;
    a_ = register_parameter("a", torch::zeros({n_kv_heads, d_head_}));
    b_ = register_parameter("b", torch::zeros({n_kv_heads, d_head_}));
  }

  bool rotates() const override { return true; }

  torch::Tensor rotate(const torch::Tensor& x, Role, const torch::Tensor& positions, std::int64_t,
                       std::int64_t) override {
    FATHOM_CHECK(x.dim() == 4 && x.size(3) == d_head_, "rotate needs x [batch, seq, heads, d_head]");
    const std::int64_t n_heads = x.size(2), n_planes = *options_.planes, width = d_head_ / n_planes;
    const auto real = x.scalar_type() == torch::kDouble ? torch::kDouble : torch::kFloat32;
    const Generators g = generators(n_heads, real);
    const Angles angles = turning_angles(g, positions, real);
    const torch::Tensor parts = x.to(real).view({x.size(0), x.size(1), n_heads, n_planes, width});
    const torch::Tensor ax = (parts * g.a).sum(-1, true), bx = (parts * g.b).sum(-1, true);
    // L x = a (b x) - b (a x), and L^2 x is L of that.
    const torch::Tensor on_a = angles.sine * bx + angles.cosine * (g.ab * bx - g.bb * ax);
    const torch::Tensor on_b = -angles.sine * ax - angles.cosine * (g.aa * bx - g.ab * ax);
    return (parts + g.a * on_a + g.b * on_b).reshape(x.sizes()).to(x.scalar_type());
  }

  /// Unit vectors, a little tilted and stretched.
  void draw_parameter(const std::string& name, torch::Tensor& values, RngStream& rng) const override {
    const std::int64_t width = d_head_ / *options_.planes, axis = name == "a" ? 0 : 1;
    float* out = values.data_ptr<float>();
    for (std::int64_t i = 0; i < values.numel(); ++i)
      out[i] = static_cast<float>((i % width == axis ? 1.0 : 0.0) + kGrapeStartNoise * rng.normal());
  }

 private:
  /// a, b: [n_heads, planes, width]; their products and s: [n_heads, planes, 1].
  struct Generators {
    torch::Tensor a, b, aa, ab, bb, s;
  };
  /// sin(n w s) / s and (1 - cos(n w s)) / s^2, [batch or 1, seq, n_heads, planes, 1].
  struct Angles {
    torch::Tensor sine, cosine;
  };

  Generators generators(std::int64_t n_heads, torch::Dtype real) const {
    const std::int64_t n_planes = *options_.planes;
    const auto per_head = [&](const torch::Tensor& all) {
      const torch::Tensor planes = all.view({all.size(0), n_planes, d_head_ / n_planes}).to(real);
      return n_heads == all.size(0) ? planes : planes.repeat_interleave(n_heads / all.size(0), 0);
    };
    Generators g{per_head(a_), per_head(b_), {}, {}, {}, {}};
    g.aa = (g.a * g.a).sum(-1, true);
    g.ab = (g.a * g.b).sum(-1, true);
    g.bb = (g.b * g.b).sum(-1, true);
    g.s = (g.aa * g.bb - g.ab * g.ab).clamp_min(kGrapeLeastArea).sqrt();
    return g;
  }

  Angles turning_angles(const Generators& g, const torch::Tensor& positions, torch::Dtype real) const {
    const bool same_rows = positions.size(0) > 1 && positions.stride(0) == 0;  // one row serves the batch
    const torch::Tensor rows = same_rows ? positions.narrow(0, 0, 1) : positions;
    const auto options = torch::TensorOptions().dtype(torch::kDouble).device(positions.device());
    const torch::Tensor frequency =
        at::pow(options_.base, -at::arange(*options_.planes, options) / static_cast<double>(*options_.planes));
    const torch::Tensor n = rows.to(torch::kDouble).view({rows.size(0), rows.size(1), 1, 1, 1});
    // In double: a float32 product would be wrong by 0.03 rad at position 10^6.
    const torch::Tensor s = g.s.to(torch::kDouble), angle = n * frequency.view({-1, 1}) * s;
    return {(angle.sin() / s).to(real), ((1 - angle.cos()) / (s * s)).to(real)};
  }

  GrapeMOptions options_;
  std::int64_t d_head_;
  torch::Tensor a_, b_;  // [n_kv_heads, d_head]
};

std::shared_ptr<PositionScheme> make_grape_m(const SchemeContext& context) {
  return std::make_shared<GrapeMScheme>(context);
}

std::vector<OptionDescription> describe_grape_m() {
  return describe_options(GrapeMOptions{});
}

}  // namespace

PositionSchemeEntry schemes::grape_m_entry() {
  return {{"grape_m", 1, "Rotation of queries and keys in learned planes; RoPE is a special case.",
           "GRAPE 2026, multiplicative form", false, false, &describe_grape_m},
          &make_grape_m};
}

}  // namespace fathom::position
