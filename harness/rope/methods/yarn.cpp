#include <algorithm>
#include <cmath>
#include <memory>

#include "harness/core/error.h"
#include "harness/rope/angle.h"
#include "harness/rope/methods/method_checks.h"
#include "harness/rope/methods/yarn_ramp.h"

namespace fathom::rope {
namespace {

struct YarnOptions {
  double beta_fast = 32;
  double beta_slow = 1;
  bool truncate = true;
  std::optional<double> attention_factor, mscale, mscale_all_dim;
  double coefficient = 0.1;
  std::string ramp = "index", clamp = "rotary_dim";
  bool softmax_mscale = false, dynamic = false;

  void visit(OptionVisitor& v) {
    v.real("beta_fast", beta_fast, {1e-6, 1e9}, "Channels with more turns than this over the original context stay.");
    v.real("beta_slow", beta_slow, {1e-6, 1e9}, "Channels with fewer turns than this are divided by the factor.");
    v.flag("truncate", truncate, "Round the ends of the ramp outwards to whole channels.");
    v.optional_real("attention_factor", attention_factor, {0, 1e9}, "Multiplier of cos and sin; auto = from factor.");
    v.optional_real("mscale", mscale, {0, 1e9}, "k above the line of the attention factor; 0 counts as left out.");
    v.optional_real("mscale_all_dim", mscale_all_dim, {0, 1e9}, "k below the line; 0 counts as left out.");
    v.real("coefficient", coefficient, {0, 1e3}, "c in m(k) = c k ln s + 1.");
    v.choice("ramp", ramp, {"index", "turns"}, "Variable of the ramp: channel index (all code) or turns (the paper).");
    v.choice("clamp", clamp, {"rotary_dim", "channels"}, "Upper end of the ramp: r - 1 (all code) or r/2 - 1.");
    v.flag("softmax_mscale", softmax_mscale, "Softmax scale times m(mscale_all_dim)^2, as in DeepSeek's attention.");
    v.flag("dynamic", dynamic, "The factor is max(1, current length / original context) instead of the given one.");
  }
};

/// Peng et al. 2023, section 3.4, with s the factor, alpha = beta_slow, beta = beta_fast, L0 the original context.
class YarnScaling : public RopeScaling {
 public:
  YarnScaling(double s, YarnOptions options) : s_(s), options_(std::move(options)) {}

  RopeFrequencies frequencies(const RopeGeometry& geometry, std::int64_t seq_len) const override {
    require_original_context("yarn", geometry);
    if (!(geometry.base > 1)) throw ConfigError("scaling yarn: base must be above 1");
    RopeFrequencies out{default_inv_freq(geometry.rotary_dim, geometry.base)};
    const std::vector<double> ramp =
        options_.ramp == "turns" ? ramp_by_turns(geometry, out.inv_freq) : ramp_by_index(geometry, out.inv_freq.size());
    const double s = options_.dynamic ? current_factor(geometry, seq_len) : s_;
    for (std::size_t i = 0; i < ramp.size(); ++i) {
      // theta'_i = (1 - gamma) theta_i / s + gamma theta_i, where gamma = 1 - ramp
      double& theta = out.inv_freq[i];
      theta = theta * (1 - ramp[i]) + theta / s * ramp[i];
    }
    out.attention_factor = attention_factor(s);
    if (options_.softmax_mscale) out.softmax_scale_factor = std::pow(m(options_.mscale_all_dim.value_or(1), s), 2);
    return out;
  }
  bool depends_on_length() const override { return options_.dynamic; }
  std::optional<std::int64_t> constant_up_to(const RopeGeometry& geometry) const override {
    if (!options_.dynamic) return std::nullopt;
    return geometry.original_context;
  }
  std::string canonical_options() const override { return fathom::canonical_options(options_); }

 private:
  static double current_factor(const RopeGeometry& geometry, std::int64_t seq_len) {
    return std::max(1.0, static_cast<double>(seq_len) / static_cast<double>(geometry.original_context));
  }

  /// Linear in the channel index, between the channels that turn beta and alpha times: what every implementation does.
  std::vector<double> ramp_by_index(const RopeGeometry& geometry, std::size_t n_channels) const {
    const YarnRamp ends =
        yarn_ramp(geometry, {options_.beta_fast, options_.beta_slow,
                             options_.truncate ? YarnRounding::kOutwards : YarnRounding::kNone,
                             options_.clamp == "channels" ? YarnClamp::kChannels : YarnClamp::kRotaryDim});
    std::vector<double> ramp;
    for (std::size_t i = 0; i < n_channels; ++i) {
      ramp.push_back(std::clamp((static_cast<double>(i) - ends.low) / (ends.high - ends.low), 0.0, 1.0));
    }
    return ramp;
  }

  /// gamma(r_i) = (r_i - alpha) / (beta - alpha), r_i = L0 / lambda_i: as printed in the paper's equation 18.
  std::vector<double> ramp_by_turns(const RopeGeometry& geometry, const std::vector<double>& thetas) const {
    std::vector<double> ramp;
    for (const double theta : thetas) {
      const double turns = static_cast<double>(geometry.original_context) * theta / kTwoPi;
      const double gamma = (turns - options_.beta_slow) / (options_.beta_fast - options_.beta_slow);
      ramp.push_back(1 - std::clamp(gamma, 0.0, 1.0));
    }
    return ramp;
  }

  /// m(k) = 0.1 k ln s + 1; the paper's sqrt(1/t) is m(1).
  double m(double k, double s) const { return s <= 1 ? 1 : options_.coefficient * k * std::log(s) + 1; }

  double attention_factor(double s) const {
    if (options_.attention_factor) return *options_.attention_factor;
    const double k = options_.mscale.value_or(0);
    const double k_all = options_.mscale_all_dim.value_or(0);
    return k != 0 && k_all != 0 ? m(k, s) / m(k_all, s) : m(1, s);
  }

  double s_;
  YarnOptions options_;
};

std::vector<OptionDescription> describe_yarn() {
  return describe_options(YarnOptions{});
}

std::unique_ptr<RopeScaling> make_yarn(double factor, const OptionSource& source) {
  require_factor("yarn", factor);
  YarnOptions options;
  bind_options(options, source);
  if (options.beta_fast < options.beta_slow) {
    throw ConfigError("scaling yarn: beta_fast must not be below beta_slow");
  }
  if (options.ramp == "turns" && options.beta_fast == options.beta_slow) {
    throw ConfigError("scaling yarn: ramp = turns needs beta_fast above beta_slow");
  }
  return std::make_unique<YarnScaling>(factor, options);
}

}  // namespace

YarnRamp yarn_ramp(const RopeGeometry& geometry, const YarnRampSettings& settings) {
  const auto r = static_cast<double>(geometry.rotary_dim);
  const auto l0 = static_cast<double>(geometry.original_context);
  const auto channel_with_turns = [&](double n) {
    return r * std::log(l0 / (kTwoPi * n)) / (2 * std::log(geometry.base));
  };
  YarnRamp ramp{channel_with_turns(settings.beta_fast), channel_with_turns(settings.beta_slow)};
  if (settings.rounding == YarnRounding::kOutwards) ramp = {std::floor(ramp.low), std::ceil(ramp.high)};
  ramp.low = std::max(ramp.low, 0.0);
  ramp.high = std::min(ramp.high, settings.clamp == YarnClamp::kChannels ? r / 2 - 1 : r - 1);
  if (ramp.low == ramp.high) ramp.high += 0.001;  // a step instead of a division by zero
  return ramp;
}

RopeScalingEntry methods::yarn_entry() {
  return {"yarn",
          1,
          "Fast channels stay, slow ones are divided by the factor, a ramp between; logits are sharpened.",
          "Peng et al. 2023 (YaRN), section 3.4",
          true,
          &describe_yarn,
          &make_yarn};
}

}  // namespace fathom::rope
