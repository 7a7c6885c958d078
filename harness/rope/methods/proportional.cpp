#include <cmath>
#include <memory>

#include "harness/rope/methods/method_checks.h"

namespace fathom::rope {
namespace {

struct ProportionalOptions {
  double share = 1;

  void visit(OptionVisitor& v) {
    v.real("share", share, {0, 1}, "Share of the pairs that turn, fastest first; 1 is plain RoPE, 0 is NoPE.");
  }
};

/// p-RoPE: theta_i = b^(-2i/r) / s for i < floor(p r / 2), 0 for the rest. The rotary width r stays the whole head, in
/// the exponent as in the pairing: the pairs that stand still are the slowest ones, not a suffix of the head.
class ProportionalScaling : public RopeScaling {
 public:
  ProportionalScaling(double s, ProportionalOptions options) : s_(s), options_(options) {}

  RopeFrequencies frequencies(const RopeGeometry& geometry, std::int64_t) const override {
    RopeFrequencies out{default_inv_freq(geometry.rotary_dim, geometry.base)};
    const auto n_turning =
        static_cast<std::size_t>(std::floor(options_.share * static_cast<double>(geometry.rotary_dim) / 2));
    for (std::size_t i = 0; i < out.inv_freq.size(); ++i) {
      out.inv_freq[i] = i < n_turning ? out.inv_freq[i] / s_ : 0.0;
    }
    return out;
  }
  std::string canonical_options() const override { return fathom::canonical_options(options_); }

 private:
  double s_;
  ProportionalOptions options_;
};

std::vector<OptionDescription> describe_proportional() {
  return describe_options(ProportionalOptions{});
}

std::unique_ptr<RopeScaling> make_proportional(double factor, const OptionSource& source) {
  require_factor("proportional", factor);
  ProportionalOptions options;
  bind_options(options, source);
  return std::make_unique<ProportionalScaling>(factor, options);
}

}  // namespace

RopeScalingEntry methods::proportional_entry() {
  return {"proportional",
          1,
          "p-RoPE: only the fastest share of the pairs turns, the slowest stand still.",
          "Barbero et al. 2024 (arXiv 2410.06205), section 6",
          true,
          &describe_proportional,
          &make_proportional};
}

}  // namespace fathom::rope
