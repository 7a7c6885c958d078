#include <memory>

#include "harness/core/error.h"
#include "harness/rope/methods/method_checks.h"

namespace fathom::rope {
namespace {

struct DivisorOptions {
  std::vector<std::string> divisors;

  void visit(OptionVisitor& v) { v.text_list("divisors", divisors, "Divisor of every channel's frequency; required."); }
};

/// theta'_i = theta_i / divisor_i, the list as a file gives it.
class DivisorScaling : public RopeScaling {
 public:
  explicit DivisorScaling(const DivisorOptions& options)
      : options_(options), divisors_(parse_divisors("divisors", "divisors", options.divisors)) {}

  RopeFrequencies frequencies(const RopeGeometry& geometry, std::int64_t) const override {
    RopeFrequencies out{default_inv_freq(geometry.rotary_dim, geometry.base)};
    divide_channels("divisors", "divisors", divisors_, out.inv_freq);
    return out;
  }
  std::string canonical_options() const override { return fathom::canonical_options(options_); }

 private:
  DivisorOptions options_;
  std::vector<double> divisors_;
};

std::vector<OptionDescription> describe_divisors() {
  return describe_options(DivisorOptions{});
}

std::unique_ptr<RopeScaling> make_divisors(double, const OptionSource& source) {
  DivisorOptions options;
  bind_options(options, source);
  if (options.divisors.empty()) {
    throw ConfigError("scaling divisors: divisors is required, one number per channel");
  }
  return std::make_unique<DivisorScaling>(options);
}

}  // namespace

RopeScalingEntry methods::divisors_entry() {
  return {"divisors",
          1,
          "Frequencies divided channel by channel, as a GGUF file's rope_freqs tensor says.",
          "GGUF specification, tensor rope_freqs",
          false,
          &describe_divisors,
          &make_divisors};
}

}  // namespace fathom::rope
