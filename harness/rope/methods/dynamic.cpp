#include <algorithm>
#include <cmath>
#include <memory>

#include "harness/rope/methods/method_checks.h"

namespace fathom::rope {
namespace {

struct DynamicOptions {
  void visit(OptionVisitor&) {}
};

/// b_eff = b * (s L / Lmax - (s - 1))^(r / (r - 2)) with L = max(seq_len, Lmax): plain RoPE up to Lmax, whatever s is.
class DynamicScaling : public RopeScaling {
 public:
  explicit DynamicScaling(double s) : s_(s) {}

  RopeFrequencies frequencies(const RopeGeometry& geometry, std::int64_t seq_len) const override {
    require_original_context("dynamic", geometry);
    require_base_change("dynamic", geometry);
    // No rounding may creep in below Lmax: there the list is that of plain RoPE to the bit.
    if (seq_len <= geometry.original_context) return {default_inv_freq(geometry.rotary_dim, geometry.base)};
    const auto r = static_cast<double>(geometry.rotary_dim);
    const auto l_max = static_cast<double>(geometry.original_context);
    const auto l = static_cast<double>(seq_len);
    const double b_eff = geometry.base * std::pow(s_ * l / l_max - (s_ - 1), r / (r - 2));
    return {default_inv_freq(geometry.rotary_dim, b_eff)};
  }
  bool depends_on_length() const override { return true; }
  std::optional<std::int64_t> constant_up_to(const RopeGeometry& geometry) const override {
    return geometry.original_context;
  }
  std::string canonical_options() const override { return ""; }

 private:
  double s_;
};

std::vector<OptionDescription> describe_dynamic() {
  return {};
}

std::unique_ptr<RopeScaling> make_dynamic(double factor, const OptionSource& source) {
  require_factor("dynamic", factor);
  DynamicOptions options;
  bind_options(options, source);
  return std::make_unique<DynamicScaling>(factor);
}

}  // namespace

RopeScalingEntry methods::dynamic_entry() {
  return {"dynamic",
          1,
          "Dynamic NTK: the base grows with the current length, from the trained length on.",
          "Peng et al. 2023 (YaRN), section 3.3",
          true,
          &describe_dynamic,
          &make_dynamic};
}

}  // namespace fathom::rope
