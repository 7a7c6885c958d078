#include <cmath>
#include <memory>

#include "harness/rope/methods/method_checks.h"

namespace fathom::rope {
namespace {

struct NtkOptions {
  void visit(OptionVisitor&) {}
};

/// b' = b * s^(r / (r - 2)): channel 0 keeps its frequency, the last one gets exactly theta / s.
class NtkScaling : public RopeScaling {
 public:
  explicit NtkScaling(double s) : s_(s) {}

  RopeFrequencies frequencies(const RopeGeometry& geometry, std::int64_t) const override {
    require_base_change("ntk", geometry);
    const auto r = static_cast<double>(geometry.rotary_dim);
    return {default_inv_freq(geometry.rotary_dim, geometry.base * std::pow(s_, r / (r - 2)))};
  }
  std::string canonical_options() const override { return ""; }

 private:
  double s_;
};

std::vector<OptionDescription> describe_ntk() {
  return {};
}

std::unique_ptr<RopeScaling> make_ntk(double factor, const OptionSource& source) {
  require_factor("ntk", factor);
  NtkOptions options;
  bind_options(options, source);
  return std::make_unique<NtkScaling>(factor);
}

}  // namespace

RopeScalingEntry methods::ntk_entry() {
  return {"ntk",
          1,
          "NTK-aware: one larger base, so that only the lowest frequency is divided by the whole factor.",
          "Peng et al. 2023 (YaRN), definition 1",
          true,
          &describe_ntk,
          &make_ntk};
}

}  // namespace fathom::rope
