#include <memory>

#include "harness/rope/methods/method_checks.h"

namespace fathom::rope {
namespace {

struct LinearOptions {
  void visit(OptionVisitor&) {}
};

/// theta'_i = theta_i / s: position m is read as m / s.
class LinearScaling : public RopeScaling {
 public:
  explicit LinearScaling(double s) : s_(s) {}

  RopeFrequencies frequencies(const RopeGeometry& geometry, std::int64_t) const override {
    RopeFrequencies out{default_inv_freq(geometry.rotary_dim, geometry.base)};
    for (double& theta : out.inv_freq) theta /= s_;
    return out;
  }
  std::string canonical_options() const override { return ""; }

 private:
  double s_;
};

std::vector<OptionDescription> describe_linear() {
  return {};
}

std::unique_ptr<RopeScaling> make_linear(double factor, const OptionSource& source) {
  require_factor("linear", factor);
  LinearOptions options;
  bind_options(options, source);
  return std::make_unique<LinearScaling>(factor);
}

}  // namespace

RopeScalingEntry methods::linear_entry() {
  return {"linear",
          1,
          "Position interpolation: every frequency divided by the factor.",
          "Chen et al. 2023, equation 4",
          true,
          &describe_linear,
          &make_linear};
}

}  // namespace fathom::rope
