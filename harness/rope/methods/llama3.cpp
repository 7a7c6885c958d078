#include <cmath>
#include <memory>

#include "harness/core/error.h"
#include "harness/rope/angle.h"
#include "harness/rope/methods/method_checks.h"

namespace fathom::rope {
namespace {

struct Llama3Options {
  double low_freq_factor = 1;
  double high_freq_factor = 4;

  void visit(OptionVisitor& v) {
    v.real("low_freq_factor", low_freq_factor, {1e-6, 1e9},
           "Fewer turns than this over the original context: divided.");
    v.real("high_freq_factor", high_freq_factor, {1e-6, 1e9}, "More turns than this: unchanged.");
  }
};

/// With the period w = 2 pi / theta: theta where w < L0 / high, theta / s where w > L0 / low, and in between
/// theta ((1 - k) / s + k) with k = (L0 / w - low) / (high - low).
class Llama3Scaling : public RopeScaling {
 public:
  Llama3Scaling(double s, Llama3Options options) : s_(s), options_(options) {}

  RopeFrequencies frequencies(const RopeGeometry& geometry, std::int64_t) const override {
    require_original_context("llama3", geometry);
    const auto l0 = static_cast<double>(geometry.original_context);
    const double low = options_.low_freq_factor;
    const double high = options_.high_freq_factor;
    RopeFrequencies out{default_inv_freq(geometry.rotary_dim, geometry.base)};
    for (double& theta : out.inv_freq) {
      const double w = kTwoPi / theta;
      if (w < l0 / high) continue;
      if (w > l0 / low || low == high) {  // low == high leaves no band; the blend would divide by zero
        theta /= s_;
        continue;
      }
      const double k = (l0 / w - low) / (high - low);
      theta *= (1 - k) / s_ + k;
    }
    return out;
  }
  std::string canonical_options() const override { return fathom::canonical_options(options_); }

 private:
  double s_;
  Llama3Options options_;
};

std::vector<OptionDescription> describe_llama3() {
  return describe_options(Llama3Options{});
}

std::unique_ptr<RopeScaling> make_llama3(double factor, const OptionSource& source) {
  require_factor("llama3", factor);
  Llama3Options options;
  bind_options(options, source);
  if (options.high_freq_factor < options.low_freq_factor) {
    throw ConfigError("scaling llama3: high_freq_factor must not be below low_freq_factor");
  }
  return std::make_unique<Llama3Scaling>(factor, options);
}

}  // namespace

RopeScalingEntry methods::llama3_entry() {
  return {"llama3",
          1,
          "Three bands by period: unchanged, blended, divided by the factor.",
          "Meta, Llama 3.1 model code (2024)",
          true,
          &describe_llama3,
          &make_llama3};
}

}  // namespace fathom::rope
