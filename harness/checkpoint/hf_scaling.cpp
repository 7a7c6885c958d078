#include "harness/checkpoint/hf_scaling.h"

#include <fmt/format.h>

#include <cmath>

#include "harness/core/text_util.h"

namespace fathom::checkpoint {
namespace {

/// TeleChat3's code computes m(k) = 0.07 k ln s + 1.
constexpr const char* kTeleChatCoefficient = "0.07";

/// Reads one rope block: the method, and the options that it takes.
class HfScalingBlock {
 public:
  HfScalingBlock(const JsonObject& config, const JsonObject& block, const HfFamily& family, std::int64_t claimed,
                 std::vector<std::string>& warnings)
      : config_(config), block_(block), family_(family), claimed_(claimed), warnings_(warnings) {
    constexpr const char* kKey = "original_max_position_embeddings";
    if (block_.has(kKey)) original_ = block_.required_integer(kKey, 1, INT64_MAX);
    // A top-level value, of the class where the file has none, wins over the block's; blocks by layer type have their
    // own. Both as in transformers.
    if (!family_.local_theta.empty() || !config_.has(kKey)) return;
    const std::int64_t outside = config_.required_integer(kKey, 1, INT64_MAX);
    if (original_ && *original_ != outside) {
      warnings_.push_back(fmt::format("{}: {} = {} is used, not the {} inside the rope block, as in transformers",
                                      config_.where(), kKey, outside, *original_));
    }
    original_ = outside;
  }

  ScalingSpec read(const std::string& name) {
    ScalingSpec spec;
    is_nested_ = name.find('.') != std::string::npos;
    spec.original_context = original_.value_or(claimed_);
    const std::string type = read_hf_rope_type(block_, family_);
    if (type == "linear") {
      read_factor("linear", spec);
    } else if (type == "dynamic") {
      read_dynamic(spec);
    } else if (type == "yarn" || type == "telechat3-yarn") {
      read_yarn(spec, type);
    } else if (type == "llama3") {
      read_llama3(spec);
    } else if (type == "longrope") {
      read_longrope(spec);
    } else if (type == "proportional") {
      read_proportional(spec);
    }
    // transformers' latent attention takes m^2 into the softmax scale under every one of these.
    if (family_.heads == "mla" && type != "yarn" && type != "default" && block_.real("mscale_all_dim").value_or(0) != 0)
      block_.fail("mscale_all_dim", fmt::format("is supported with rope_type yarn only, not {}", type));
    spec.options = OptionSource(fmt::format("{} {}", config_.where(), name), values_);
    return spec;
  }

 private:
  double checked_factor(std::string_view key, double factor) const {
    if (factor < 1) block_.fail(key, fmt::format("= {} must be at least 1", format_double(factor)));
    return factor;
  }

  void read_factor(const char* method, ScalingSpec& spec) {
    const auto factor = block_.real("factor");
    if (!factor) block_.fail("factor", fmt::format("is missing; rope_type {} needs one", method));
    spec.method = method;
    spec.factor = checked_factor("factor", *factor);
  }

  void read_dynamic(ScalingSpec& spec) {
    // HunYuan: a static base change under the name of the dynamic one.
    if (const auto alpha = starts_with(family_.model_type, "hunyuan") ? block_.real("alpha") : std::nullopt) {
      spec.method = "ntk";
      spec.factor = checked_factor("alpha", *alpha);
      for (const char* key : {"factor", "mscale", "mscale_all_dim", "beta_fast", "beta_slow"}) block_.has(key);
      return;
    }
    read_factor("dynamic", spec);
    if (claimed_ == 0) config_.fail("max_position_embeddings", "is missing; rope_type dynamic grows from that length");
    spec.original_context = claimed_;  // transformers never reads the original length here
    block_.has("original_max_position_embeddings");
  }

  void require_original(std::string_view type) const {
    if (original_) return;
    block_.fail("original_max_position_embeddings",
                fmt::format("is missing; rope_type {} needs the length the model was trained on (transformers would "
                            "silently take max_position_embeddings)",
                            type));
  }

  void read_factor_or_ratio(ScalingSpec& spec) {
    const auto factor = block_.real("factor");
    if (!factor && claimed_ == 0) {
      block_.fail("factor", "is missing, and without max_position_embeddings there is no ratio to take instead");
    }
    const double ratio = static_cast<double>(claimed_) / static_cast<double>(*original_);
    spec.factor = checked_factor("factor", factor.value_or(ratio));
    if (factor && claimed_ != 0 && ratio != 1 && std::abs(ratio / *factor - 1) > 1e-6) {
      warnings_.push_back(fmt::format(
          "{}: factor = {} is used; max_position_embeddings / original_max_position_embeddings would be {} / {} = {}",
          config_.where(), format_double(*factor), claimed_, *original_, format_double(ratio)));
    }
  }

  /// Copies a number; zero means "left out" in transformers, which tests with `or`.
  void copy_non_zero(const char* key) {
    const auto value = block_.real(key);
    if (value && *value != 0) values_[key] = format_double(*value);
  }

  bool copy_real(const char* key) {
    const auto value = block_.real(key);
    if (value) values_[key] = format_double(*value);
    return value.has_value();
  }

  void read_yarn(ScalingSpec& spec, std::string_view type) {
    require_original(type);
    spec.method = "yarn";
    read_factor_or_ratio(spec);
    for (const char* key : {"beta_fast", "beta_slow", "mscale", "mscale_all_dim"}) copy_non_zero(key);
    if (!copy_real("attention_factor") && family_.yarn_attention_factor) {
      values_["attention_factor"] = format_double(*family_.yarn_attention_factor);
    }
    if (const auto value = block_.flag("truncate")) {
      values_["truncate"] = *value ? "on" : "off";
      if (!*value && is_nested_) {
        warnings_.push_back(
            fmt::format("{}: truncate = false counts here; transformers does not find it in a block of "
                        "one layer type, and truncates",
                        config_.where()));
      }
    }
    if (type == "telechat3-yarn") values_["coefficient"] = kTeleChatCoefficient;
    // Latent attention sharpens its un-rotated lanes as well: m^2 goes into the softmax scale.
    if (family_.heads == "mla" && values_.count("mscale_all_dim") != 0) values_["softmax_mscale"] = "on";
  }

  void read_llama3(ScalingSpec& spec) {
    require_original("llama3");
    read_factor("llama3", spec);
    for (const char* key : {"low_freq_factor", "high_freq_factor"}) {
      values_[key] = format_double(block_.required_positive(key));
    }
  }

  void copy_list(const char* key) {
    const auto list = block_.real_list(key);
    if (!list) block_.fail(key, "is missing; rope_type longrope needs one divisor per channel");
    std::vector<std::string> parts;
    for (const double value : *list) parts.push_back(format_double(value));
    values_[key] = join(parts, ",");
  }

  void read_longrope(ScalingSpec& spec) {
    require_original("longrope");
    spec.method = "longrope";
    read_factor_or_ratio(spec);
    copy_list("short_factor");
    copy_list("long_factor");
    copy_real("attention_factor");
    if (family_.model_type != "phimoe") return;
    // Phi-3.5-MoE gives the multiplier of each list; where they agree, that is the attention factor.
    const auto shorter = block_.real("short_mscale");
    const auto longer = block_.real("long_mscale");
    if (!shorter && !longer) return;
    if (!shorter || !longer) block_.fail(shorter ? "long_mscale" : "short_mscale", "is missing beside the other one");
    if (*shorter == *longer) {
      values_["attention_factor"] = format_double(*shorter);
    } else {
      values_["short_mscale"] = format_double(*shorter);
      values_["long_mscale"] = format_double(*longer);
    }
  }

  /// p-RoPE: the first share of the channels rotates, the rest is frozen; pairs reach over the whole head.
  void read_proportional(ScalingSpec& spec) {
    spec.method = "proportional";
    spec.factor = checked_factor("factor", block_.real("factor").value_or(1));
    const auto share = block_.real("partial_rotary_factor");
    values_["share"] = format_double(share.value_or(config_.real("partial_rotary_factor").value_or(1)));
  }

  const JsonObject& config_;
  const JsonObject& block_;
  const HfFamily& family_;
  std::int64_t claimed_;
  bool is_nested_ = false;  ///< a block of one layer type
  std::vector<std::string>& warnings_;
  std::optional<std::int64_t> original_;
  std::map<std::string, std::string> values_;
};

const std::map<std::string, std::string, std::less<>>& rope_type_names() {
  static const std::map<std::string, std::string, std::less<>> names = {
      {"default", "default"}, {"dynamic", "dynamic"},           {"linear", "linear"},
      {"llama3", "llama3"},   {"longrope", "longrope"},         {"mrope", "default"},
      {"su", "longrope"},     {"proportional", "proportional"}, {"telechat3-yarn", "telechat3-yarn"},
      {"yarn", "yarn"}};
  return names;
}

}  // namespace

std::string read_hf_rope_type(const JsonObject& block, const HfFamily& family) {
  const auto canonical = [&block](const char* key, const std::string& declared) {
    const auto found = rope_type_names().find(declared);
    if (found != rope_type_names().end()) return found->second;
    block.fail(key, fmt::format("= '{}' is not supported; supported: default (mrope), linear, dynamic, yarn "
                                "(telechat3-yarn), llama3, longrope (su), proportional",
                                declared));
  };
  const auto rope_type = block.text("rope_type");
  const auto type = block.text("type");
  if (!rope_type && !type) {
    if (block.has("factor")) {
      block.fail("rope_type", "is missing although there is a factor; say which scaling it belongs to");
    }
    return "default";
  }
  if (!rope_type && family.local_theta == "rope_local_base_freq")
    block.fail("type", "is not read by transformers in this model_type, which then scales nothing; call it rope_type");
  const std::string found = rope_type ? canonical("rope_type", *rope_type) : canonical("type", *type);
  if (rope_type && type && canonical("type", *type) != found) {
    block.fail("rope_type", fmt::format("= '{}' contradicts type = '{}'", *rope_type, *type));
  }
  return family.yarn_is_longrope && found == "yarn" ? "longrope" : found;
}

ScalingSpec read_hf_scaling(const JsonObject& config, const JsonObject& block, const HfFamily& family,
                            const std::string& name, std::int64_t claimed_context, std::vector<std::string>& warnings) {
  return HfScalingBlock(config, block, family, claimed_context, warnings).read(name);
}

}  // namespace fathom::checkpoint
