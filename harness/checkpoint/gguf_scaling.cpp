#include "harness/checkpoint/gguf_scaling.h"

#include <fmt/format.h>

#include <cmath>

#include "harness/core/text_util.h"

namespace fathom::checkpoint {
namespace {

constexpr std::int64_t kMaxChannels = std::int64_t{1} << 20;
constexpr double kYarnCoefficient = 0.1;
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
  for (const float value : values) parts.push_back(format_double(static_cast<double>(value)));
  return join(parts, ",");
}

class GgufScaling {
 public:
  GgufScaling(const GgufFile& file, const GgufFamily& family, std::int64_t claimed, std::vector<std::string>& warnings)
      : file_(file), family_(family), prefix_(family.architecture + ".rope."), claimed_(claimed), warnings_(warnings) {}

  ScalingSpec read() {
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
    spec.options = OptionSource(fmt::format("{} {}scaling", file_.where(), prefix_), values_);
    return spec;
  }

 private:
  /// Llama-3.1 and its kin hold their scaling in rope_freqs alone; a file without it silently runs unscaled.
  void warn_without_divisors() {
    const double base = file_.real(prefix_ + "freq_base").value_or(kGgufDefaultBase);
    if (!family_.expects_divisors || base < kLlama3Base || claimed_ <= kLlama3Context) return;
    warnings_.push_back(fmt::format(
        "{}: theta {} and context {} are those of Llama 3.1 and later, but there is no tensor rope_freqs.weight: "
        "frequencies are not scaled",
        file_.where(), format_double(base), claimed_));
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

  /// llama.cpp reads a missing type as linear; with a rope_freqs tensor and factor 1 that is no scaling.
  std::string scaling_type(double factor) const {
    const auto type = file_.text(prefix_ + "scaling.type");
    if (type && *type == "linear" && factor == 1) return "none";
    if (type) return std::string(*type);
    return factor > 1 ? "linear" : "none";
  }

  /// The product that reaches llama.cpp's kernel: m(1), or m(1) / m(log multiplier) where the file has one, times the
  /// file's extra multiplier; m(k) = 0.1 k ln s + 1. Latent attention has m(log multiplier)^2 in its softmax scale.
  void read_yarn(ScalingSpec& spec) {
    spec.method = "yarn";
    const auto m = [&spec](double k) { return spec.factor > 1 ? kYarnCoefficient * k * std::log(spec.factor) + 1 : 1; };
    const double extra = file_.real(prefix_ + "scaling.attn_factor").value_or(1);
    double k_all = file_.real(prefix_ + "scaling.yarn_log_multiplier").value_or(0);
    if (family_.latent) k_all /= kYarnCoefficient;  // these files hold the product
    if (extra != 1 || k_all != 0) {
      values_["attention_factor"] = format_double(k_all != 0 ? m(1) / m(k_all) * extra : m(1) * extra);
    }
    if (k_all != 0) values_["mscale_all_dim"] = format_double(k_all);
    if (k_all != 0 && family_.latent) values_["softmax_mscale"] = "on";
    copy("scaling.yarn_beta_fast", "beta_fast");
    copy("scaling.yarn_beta_slow", "beta_slow");
    warn_about_yarn();
  }

  void warn_about_yarn() {
    const auto warn = [this](const std::string& text) { warnings_.push_back(file_.where() + ": " + text); };
    if (const auto mix = file_.real(prefix_ + "scaling.yarn_ext_factor"); mix && *mix != 1) {
      warn(fmt::format("{}scaling.yarn_ext_factor = {} is not used", prefix_, format_double(*mix)));
    }
    if (family_.untruncated) {
      warn(
          "the YaRN ramp is rounded to whole channels, as in llama.cpp; the model's own configuration does not round "
          "(truncate = false), which no GGUF key can say");
    }
    if (values_.count("beta_fast") != 0 && family_.architecture != "grok" && family_.architecture != "mistral3") {
      warn(fmt::format("{}scaling.yarn_beta_fast = {} is used; llama.cpp takes 32 for this architecture", prefix_,
                       values_["beta_fast"]));
    }
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
    copy("scaling.attn_factor", "attention_factor");
    if (values_.count("attention_factor") == 0 && spec.factor == 1) {
      spec.factor = static_cast<double>(claimed_) / static_cast<double>(spec.original_context);
    }
  }

  void copy(const char* key, const char* option) {
    if (const auto value = file_.real(prefix_ + key)) values_[option] = format_double(*value);
  }

  const GgufFile& file_;
  const GgufFamily& family_;
  std::string prefix_;
  std::int64_t claimed_;
  std::vector<std::string>& warnings_;
  std::map<std::string, std::string> values_;
};

}  // namespace

ScalingSpec read_gguf_scaling(const GgufFile& file, const GgufFamily& family, std::int64_t claimed_context,
                              std::vector<std::string>& warnings) {
  return GgufScaling(file, family, claimed_context, warnings).read();
}

}  // namespace fathom::checkpoint
