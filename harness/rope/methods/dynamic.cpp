#include <cmath>
#include <memory>

#include "harness/rope/methods/method_checks.h"

namespace fathom::rope {
namespace {

struct DynamicOptions {
  std::string alpha = "continuous";

  void visit(OptionVisitor& v) {
    v.choice("alpha", alpha, {"continuous", "stepped"},
             "Growth of the base: s L / L0 - (s - 1), or the first Qwen's 2^(ceil(log2(L / L0)) + 1) - 1, without s.");
  }
};

/// b_eff = b * alpha^(r / (r - 2)), alpha = s L / Lmax - (s - 1) with L = max(seq_len, Lmax): plain RoPE up to Lmax,
/// whatever s is. Stepped (first-generation Qwen): alpha = max(2^ceil(log2(L / Lmax) + 1) - 1, 1).
class DynamicScaling : public RopeScaling {
 public:
  DynamicScaling(double s, DynamicOptions options) : s_(s), options_(std::move(options)) {}

  RopeFrequencies frequencies(const RopeGeometry& geometry, std::int64_t seq_len) const override {
    require_original_context("dynamic", geometry);
    require_base_change("dynamic", geometry);
    // No rounding may creep in below Lmax: there the list is that of plain RoPE to the bit.
    if (seq_len <= geometry.original_context) return {default_inv_freq(geometry.rotary_dim, geometry.base)};
    const auto r = static_cast<double>(geometry.rotary_dim);
    const double alpha = options_.alpha == "stepped" ? stepped_alpha(geometry.original_context, seq_len)
                                                     : continuous_alpha(geometry.original_context, seq_len);
    return {default_inv_freq(geometry.rotary_dim, geometry.base * std::pow(alpha, r / (r - 2)))};
  }
  bool depends_on_length() const override { return true; }
  std::optional<std::int64_t> constant_up_to(const RopeGeometry& geometry) const override {
    return geometry.original_context;
  }
  std::string canonical_options() const override { return fathom::canonical_options(options_); }

 private:
  double continuous_alpha(std::int64_t l_max, std::int64_t l) const {
    return s_ * static_cast<double>(l) / static_cast<double>(l_max) - (s_ - 1);
  }

  /// Doubling instead of a logarithm: at L = 2^k Lmax the last digit of log2 would decide between two steps.
  static double stepped_alpha(std::int64_t l_max, std::int64_t l) {
    double reach = static_cast<double>(l_max);
    double power = 1;
    for (; reach < static_cast<double>(l); reach *= 2) power *= 2;
    return 2 * power - 1;
  }

  double s_;
  DynamicOptions options_;
};

std::vector<OptionDescription> describe_dynamic() {
  return describe_options(DynamicOptions{});
}

std::unique_ptr<RopeScaling> make_dynamic(double factor, const OptionSource& source) {
  require_factor("dynamic", factor);
  DynamicOptions options;
  bind_options(options, source);
  return std::make_unique<DynamicScaling>(factor, options);
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
