#include <memory>

#include "harness/rope/rope_scaling.h"

namespace fathom::rope {
namespace {

struct NoScalingOptions {
  void visit(OptionVisitor&) {}
};

class NoScaling : public RopeScaling {
 public:
  RopeFrequencies frequencies(const RopeGeometry& geometry, std::int64_t) const override {
    return {default_inv_freq(geometry.rotary_dim, geometry.base)};
  }
  std::string canonical_options() const override { return ""; }
};

std::vector<OptionDescription> describe_none() {
  return {};
}

std::unique_ptr<RopeScaling> make_none(double, const OptionSource& source) {
  NoScalingOptions options;
  bind_options(options, source);
  return std::make_unique<NoScaling>();
}

}  // namespace

RopeScalingEntry methods::none_entry() {
  return {
      "none",         1,         "Plain rotary embedding: theta_i = b^(-2i/r).", "Su et al. 2021, section 3.2.2", false,
      &describe_none, &make_none};
}

}  // namespace fathom::rope
