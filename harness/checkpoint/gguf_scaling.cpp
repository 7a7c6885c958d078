#include "harness/checkpoint/gguf_scaling.h"

#include <fmt/format.h>

#include <cmath>

#include "harness/core/text_util.h"

namespace fathom::checkpoint {
namespace {

constexpr std::int64_t kMaxChannels = std::int64_t{1} << 20;
constexpr double kYarnCoefficient = 0.1;
constexpr double kYarnBetaFast = 32;
constexpr double kYarnBetaSlow = 1;
constexpr double kGgufDefaultBase = 10000;
constexpr double kLlama3Base = 500000;
constexpr std::int64_t kLlama3Context = 8192;

/// Numbers of a one-dimensional tensor as an option's text.
std::optional<std::string> tensor_as_option(const GgufFile& file, std::string_view name) {
  const GgufTensor* tensor = file.find_tensor(name);
  if (tensor == nullptr) return std::nullopt;
  const std::int64_t n = tensor->shape.back();
  if (tensor->shape.size() != 1 || n > kMaxChannels) file.fail(name, "must be a vector");
  std::vector<float> values(static_cast<std::size_t>(n));
  dequantize_range(*tensor->type, tensor->data, 0, n, values.data());
  std::vector<std::string> parts;
  parts.reserve(values.size());
  for (const float value : values) parts.push_back(format_double(static_cast<double>(value)));
  return join(parts, ",");
}

class GgufScaling {
 public:
  GgufScaling(const GgufFile& file, const GgufFamily& family, std::int64_t claimed, std::vector<std::string>& warnings)
      : file_(file), family_(family), prefix_(family.architecture + ".rope."), claimed_(claimed), warnings_(warnings) {}

  GgufScalings read() {
    ScalingSpec spec = read_strict();
    GgufScalings out;
    out.strict = out.lcpp = spec;
    out.strict.options = OptionSource(fmt::format("{} {}scaling", file_.where(), prefix_), values_);
    if (!differences_.empty()) {
      out.lcpp.options = OptionSource(out.strict.options.where(), lcpp_values_);
      out.difference = fmt::format("{}: {}", file_.where(), join(differences_, "; "));
    } else {
      out.lcpp.options = out.strict.options;
    }
    return out;
  }

 private:
  /// Everything but the options, which are collected in values_ and, as llama.cpp has them, in lcpp_values_.
  ScalingSpec read_strict() {
    ScalingSpec spec;
    const std::string original_key = prefix_ + "scaling.original_context_length";
    spec.original_context = file_.integer(original_key).value_or(claimed_);
    if (spec.original_context < 1) file_.fail(original_key, fmt::format("= {} must be above 0", spec.original_context));
    read_factor(spec);
    const std::string type = scaling_type(spec.factor);
    if (type == "none") {
      spec.factor = 1;
      if (const auto divisors = tensor_as_option(file_, "rope_freqs.weight")) {
        spec.method = "divisors";
        values_["divisors"] = *divisors;
      } else if (const double alpha = file_.real(prefix_ + "scaling.alpha").value_or(0); alpha > 1) {
        spec.method = "ntk";  // HunYuan: a static change of the base
        spec.factor = alpha;
      } else {
        warn_without_divisors();
      }
    } else if (file_.find_tensor("rope_freqs.weight") != nullptr) {
      file_.fail("rope_freqs.weight", fmt::format("stands beside scaling type '{}', which is not supported", type));
    } else if (type == "linear") {
      spec.method = spec.factor > 1 ? "linear" : "none";
    } else if (type == "yarn") {
      read_yarn(spec);
    } else if (type == "longrope") {
      read_longrope(spec);
    } else {
      file_.fail(prefix_ + "scaling.type",
                 fmt::format("= '{}' is not supported; supported: none, linear, yarn, longrope", type));
    }
    return spec;
  }

  void warn(const std::string& text) { warnings_.push_back(file_.where() + ": " + text); }

  /// Llama-3.1 and its kin hold their scaling in rope_freqs alone; a file without it silently runs unscaled.
  void warn_without_divisors() {
    const double base = file_.real(prefix_ + "freq_base").value_or(kGgufDefaultBase);
    if (!family_.expects_divisors || base < kLlama3Base || claimed_ <= kLlama3Context) return;
    warn(
        fmt::format("theta {} and context {} are those of Llama 3.1 and later, but there is no tensor "
                    "rope_freqs.weight: frequencies are not scaled",
                    format_double(base), claimed_));
  }

  void read_factor(ScalingSpec& spec) const {
    const std::string key = prefix_ + "scaling.factor";
    const auto factor = file_.real(key);
    spec.factor = factor ? *factor : file_.real(prefix_ + "scale_linear").value_or(1);
    if (spec.factor == 0) spec.factor = 1;  // llama.cpp: 0 stands for "not given"
    if (!(spec.factor >= 1) || !std::isfinite(spec.factor)) {
      file_.fail(key, fmt::format("= {} must be at least 1", format_double(spec.factor)));
    }
  }

  /// llama.cpp reads a missing type as linear; with a rope_freqs tensor and factor 1 that is no scaling. Phi-3's files
  /// have LongRoPE's two lists and no type.
  std::string scaling_type(double factor) const {
    const auto type = file_.text(prefix_ + "scaling.type");
    const bool unsaid = !type || ((*type == "linear" || *type == "none") && factor == 1);
    if (unsaid && factor == 1) return file_.find_tensor("rope_factors_long.weight") != nullptr ? "longrope" : "none";
    return unsaid ? "linear" : std::string(*type);
  }

  /// The attention factor is the product that reaches llama.cpp's kernel: m(1), or m(k) / m(log multiplier) where the
  /// file has one, times the file's extra multiplier; m(k) = 0.1 k ln s + 1. Files do not hold k, the maker's mscale:
  /// it is 1, but for DeepSeek-V2, where it is the log multiplier. Latent attention has m(log multiplier)^2 in its
  /// softmax scale.
  void read_yarn(ScalingSpec& spec) {
    spec.method = "yarn";
    const auto m = [&spec](double k) { return spec.factor > 1 ? kYarnCoefficient * k * std::log(spec.factor) + 1 : 1; };
    const double extra = file_.real(prefix_ + "scaling.attn_factor").value_or(1);
    double k_all = file_.real(prefix_ + "scaling.yarn_log_multiplier").value_or(0);
    if (family_.latent) k_all /= kYarnCoefficient;  // these files hold the product
    const double k = family_.architecture == "deepseek2" ? k_all : 1;
    if (extra != 1 || k_all != 0) {
      values_["attention_factor"] = format_double(k_all != 0 ? m(k) / m(k_all) * extra : m(1) * extra);
    }
    if (k_all != 0) values_["mscale_all_dim"] = format_double(k_all);
    if (k_all != 0 && family_.latent) values_["softmax_mscale"] = "on";
    if (const auto mix = file_.real(prefix_ + "scaling.yarn_ext_factor"); mix && *mix != 1) {
      warn(fmt::format("{}scaling.yarn_ext_factor = {} is not used", prefix_, format_double(*mix)));
    }
    lcpp_values_ = values_;
    read_makers_amplitude(extra);
    read_yarn_ramp(spec);
  }

  /// The attention_factor of the maker's configuration, in place of what follows from the factor.
  void read_makers_amplitude(double extra) {
    const std::string key = prefix_ + "scaling.yarn_attn_factor";
    const auto value = file_.real(key);
    if (!value) return;
    if (!(*value > 0) || !std::isfinite(*value))
      file_.fail(key, fmt::format("= {} must be above 0", format_double(*value)));
    values_["attention_factor"] = format_double(*value * extra);
    differences_.push_back(fmt::format("strict takes attention_factor = {} from {}, which lcpp does not read",
                                       format_double(*value), key));
  }

  /// llama.cpp always rounds the ramp, and reads its ends for few architectures.
  void read_yarn_ramp(const ScalingSpec& spec) {
    if (family_.untruncated) {
      values_["truncate"] = "off";
      differences_.emplace_back(
          "strict leaves the YaRN ramp unrounded (truncate = false, which no key can say), lcpp rounds it to channels");
    }
    const bool loaded = family_.architecture == "grok" || family_.architecture == "mistral3";
    for (const auto& [key, usual] : {std::pair("beta_fast", kYarnBetaFast), std::pair("beta_slow", kYarnBetaSlow)}) {
      const auto value = file_.real(fmt::format("{}scaling.yarn_{}", prefix_, key));
      if (!value) continue;
      values_[key] = format_double(*value);
      if (loaded) {
        lcpp_values_[key] = values_[key];
      } else if (*value != usual) {
        differences_.push_back(fmt::format("strict takes {0} = {1} from {2}scaling.yarn_{0}, lcpp {3}", key,
                                           values_[key], prefix_, format_double(usual)));
      }
    }
    if (is_kimi_k2(spec) && values_.count("beta_fast") == 0) {
      values_["beta_fast"] = "1";
      differences_.emplace_back(
          "strict takes beta_fast = 1 as Kimi-K2's configuration has it (theta 50000 and factor 32 from 4096 are its), "
          "which no key of this file says, lcpp 32");
    }
  }

  /// Its files say deepseek2; theta and scaling tell it from DeepSeek's own.
  bool is_kimi_k2(const ScalingSpec& spec) const {
    return family_.architecture == "deepseek2" && file_.real(prefix_ + "freq_base") == 50000 && spec.factor == 32 &&
           spec.original_context == 4096;
  }

  void read_longrope(ScalingSpec& spec) {
    const auto short_list = tensor_as_option(file_, "rope_factors_short.weight");
    const auto long_list = tensor_as_option(file_, "rope_factors_long.weight");
    if (!short_list || !long_list) {
      file_.fail("rope_factors_short.weight", "and rope_factors_long.weight are needed by scaling type 'longrope'");
    }
    spec.method = "longrope";
    values_["short_factor"] = *short_list;
    values_["long_factor"] = *long_list;
    if (const auto value = file_.real(prefix_ + "scaling.attn_factor")) {
      values_["attention_factor"] = format_double(*value);
    } else if (spec.factor == 1) {
      spec.factor = static_cast<double>(claimed_) / static_cast<double>(spec.original_context);
    }
    lcpp_values_ = values_;
    if (*short_list != *long_list) {
      lcpp_values_["switch"] = "configured";
      lcpp_values_["configured_context"] = std::to_string(claimed_);
      differences_.push_back(fmt::format(
          "strict chooses LongRoPE's list by the current length, lcpp by the configured context, by default the {} "
          "tokens of the file (scaling.configured_context)",
          claimed_));
    }
    if (values_.count("attention_factor") == 0 && spec.factor > 1) {
      lcpp_values_["attention_factor"] = "1";
      differences_.emplace_back("strict derives the attention factor from the lengths, lcpp takes 1");
    }
  }

  const GgufFile& file_;
  const GgufFamily& family_;
  std::string prefix_;
  std::int64_t claimed_;
  std::vector<std::string>& warnings_;
  std::map<std::string, std::string> values_, lcpp_values_;
  std::vector<std::string> differences_;
};

}  // namespace

GgufScalings read_gguf_scaling(const GgufFile& file, const GgufFamily& family, std::int64_t claimed_context,
                               std::vector<std::string>& warnings) {
  return GgufScaling(file, family, claimed_context, warnings).read();
}

}  // namespace fathom::checkpoint
