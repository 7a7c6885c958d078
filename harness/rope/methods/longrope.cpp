#include <cmath>
#include <memory>

#include "harness/core/error.h"
#include "harness/rope/methods/method_checks.h"

namespace fathom::rope {
namespace {

struct LongRopeOptions {
  std::vector<std::string> short_factor, long_factor;
  std::optional<double> attention_factor, short_mscale, long_mscale;
  std::string switch_by = "actual";
  std::optional<std::int64_t> configured_context;

  void visit(OptionVisitor& v) {
    v.text_list("short_factor", short_factor, "Divisor of every channel up to the original context; required.");
    v.text_list("long_factor", long_factor, "Divisor of every channel beyond it; required.");
    v.optional_real("attention_factor", attention_factor, {0, 1e9}, "Multiplier of cos and sin; auto = from factor.");
    v.optional_real("short_mscale", short_mscale, {0, 1e9}, "The same where the short list is used; auto = as above.");
    v.optional_real("long_mscale", long_mscale, {0, 1e9}, "The same where the long list is used; auto = as above.");
    v.choice("switch", switch_by, {"actual", "configured"},
             "What is compared with the original context: the current length, or configured_context (llama.cpp).");
    v.optional_integer("configured_context", configured_context, {1, INT64_C(1) << 40},
                       "For switch = configured, tokens; auto is factor times the original context.");
  }
};

/// theta'_i = theta_i / ext_i, ext = long_factor where L > L0, else short_factor, L being the current length or a
/// configured one; A = sqrt(1 + ln s / ln L0) in both, unless the file gives one for each (Phi-3.5-MoE).
class LongRopeScaling : public RopeScaling {
 public:
  LongRopeScaling(double s, const LongRopeOptions& options)
      : s_(s),
        options_(options),
        short_(parse_divisors("longrope", "short_factor", options.short_factor)),
        long_(parse_divisors("longrope", "long_factor", options.long_factor)) {}

  RopeFrequencies frequencies(const RopeGeometry& geometry, std::int64_t seq_len) const override {
    require_original_context("longrope", geometry);
    RopeFrequencies out{default_inv_freq(geometry.rotary_dim, geometry.base)};
    const double both = options_.attention_factor.value_or(amplitude(geometry));
    if (uses_long_list(geometry, seq_len)) {
      divide_channels("longrope", "long_factor", long_, out.inv_freq);
      out.attention_factor = options_.long_mscale.value_or(both);
    } else {
      divide_channels("longrope", "short_factor", short_, out.inv_freq);
      out.attention_factor = options_.short_mscale.value_or(both);
    }
    return out;
  }
  bool depends_on_length() const override {
    if (options_.switch_by == "configured") return false;
    return short_ != long_ || options_.short_mscale != options_.long_mscale;
  }
  std::optional<std::int64_t> constant_up_to(const RopeGeometry& geometry) const override {
    if (!depends_on_length()) return std::nullopt;
    return geometry.original_context;
  }
  std::string canonical_options() const override { return fathom::canonical_options(options_); }

 private:
  /// Exactly L0 tokens still belong to the short list.
  bool uses_long_list(const RopeGeometry& geometry, std::int64_t seq_len) const {
    if (options_.switch_by == "actual") return seq_len > geometry.original_context;
    const auto l0 = static_cast<double>(geometry.original_context);
    return options_.configured_context ? *options_.configured_context > geometry.original_context : s_ * l0 > l0;
  }

  double amplitude(const RopeGeometry& geometry) const {
    if (s_ <= 1 || geometry.original_context < 2) return 1;  // ln 1 = 0 would divide by zero
    return std::sqrt(1 + std::log(s_) / std::log(static_cast<double>(geometry.original_context)));
  }

  double s_;
  LongRopeOptions options_;
  std::vector<double> short_, long_;
};

std::vector<OptionDescription> describe_longrope() {
  return describe_options(LongRopeOptions{});
}

std::unique_ptr<RopeScaling> make_longrope(double factor, const OptionSource& source) {
  require_factor("longrope", factor);
  LongRopeOptions options;
  bind_options(options, source);
  if (options.short_factor.empty() || options.long_factor.empty()) {
    throw ConfigError("scaling longrope: short_factor and long_factor are required, one number per channel");
  }
  return std::make_unique<LongRopeScaling>(factor, options);
}

}  // namespace

RopeScalingEntry methods::longrope_entry() {
  return {"longrope",
          1,
          "Searched divisors per channel, one list up to the original context and one beyond.",
          "Ding et al. 2024 (LongRoPE), section 3",
          true,
          &describe_longrope,
          &make_longrope};
}

}  // namespace fathom::rope
