#include "harness/cli/position_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/cli/idle_keys.h"
#include "harness/config/parse.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/rope/position_remap.h"

namespace fathom::cli {
namespace {

constexpr std::int64_t kMaxContextTokens = INT64_C(1) << 30;
constexpr double kMaxFactor = 1e6;
constexpr double kUsualTemperatureScale = 0.1;  // of Llama-4 and Ministral-3

double positive_number(const std::string& key, const std::string& value) {
  const auto number = parse_double(value);
  if (!number || *number <= 0) throw ConfigError(fmt::format("--set {}={} is not a positive number", key, value));
  return *number;
}

std::int64_t token_number(const std::string& key, const std::string& value) {
  const auto number = parse_int(value);
  if (!number || *number < 1 || *number > kMaxContextTokens)
    throw ConfigError(fmt::format("--set {}={} is not an integer in 1..{}", key, value, kMaxContextTokens));
  return *number;
}

std::string word_of(const std::string& key, const std::string& value, const std::vector<std::string>& allowed) {
  if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return value;
  throw ConfigError(fmt::format("--set {}={} is not one of {}", key, value, join(allowed, ", ")));
}

double automatic_factor(const std::string& scaling, std::int64_t length_tokens, std::int64_t original_context) {
  if (scaling == "dynamic") return 1;
  return std::max(
      1.0, static_cast<double>(length_tokens) / static_cast<double>(std::max<std::int64_t>(1, original_context)));
}

rope::QueryTemperature make_temperature(const std::string& kind, std::optional<double> scale,
                                        std::optional<std::int64_t> length) {
  rope::QueryTemperature temperature;
  temperature.kind = rope::parse_temperature_kind(kind);
  if (temperature.kind == rope::TemperatureKind::kUniform && !scale) {
    throw ConfigError("temperature uniform: temperature.scale is missing; it is the factor on every query");
  }
  if (rope::uses_scale(temperature.kind)) temperature.scale = scale.value_or(kUsualTemperatureScale);
  if (rope::counts_tokens(temperature.kind)) temperature.length = length.value_or(0);
  return temperature;
}

/// Reads `--set` texts into the settings of one variant of a checkpoint.
class ProbeSettings {
 public:
  explicit ProbeSettings(const std::vector<std::string>& settings) {
    variant.scaling = "declared";
    variant.scaling_mode = "consistent";
    variant.remap = "none";
    variant.temperature = "declared";
    std::set<std::string> seen;
    for (const std::string& text : settings) {
      config::Setting setting = config::parse_setting(text);
      if (starts_with(setting.key, "model.")) setting.key.erase(0, 6);
      if (!seen.insert(setting.key).second) throw ConfigError(fmt::format("--set {} is given twice", setting.key));
      take(setting.key, setting.value);
    }
    if (variant.remap == "none" && !remap_options.empty()) {
      throw ConfigError(
          fmt::format("--set remap.{} changes nothing without --set remap=NAME", remap_options.begin()->first));
    }
    variant.scaling_options = OptionSource("--set scaling.*:", scaling_options);
    variant.remap_options = OptionSource("--set remap.*:", remap_options);
  }

  config::ModelVariant variant;

 private:
  void take(const std::string& key, const std::string& value) {
    if (key == "scaling") {
      variant.scaling = value;
    } else if (key == "rope.base") {
      variant.rope_base = positive_number(key, value);
    } else if (key == "rope.layers") {
      checkpoint::parse_rotation_layers(value);
      variant.rope_layers = value;
    } else if (key == "rope.gguf") {
      checkpoint::parse_gguf_reading(value);
      variant.rope_gguf = value;
    } else if (key == "rope.table_dtype") {
      variant.rope_table_dtype = word_of(key, value, {"float32", "bf16", "fp16"});
    } else if (key == "scaling.factor") {
      if (value != "auto") variant.scaling_factor = positive_number(key, value);
      if (variant.scaling_factor.value_or(1) > kMaxFactor)
        throw ConfigError(fmt::format("--set {}={} is above {}", key, value, kMaxFactor));
    } else if (key == "scaling.original_context") {
      variant.original_context = token_number(key, value);
    } else if (key == "scaling.mode") {
      rope::parse_length_policy(value);
      variant.scaling_mode = value;
    } else if (key == "scaling.frozen_length") {
      variant.frozen_length = token_number(key, value);
    } else if (key == "remap") {
      variant.remap = value;
    } else if (key == "temperature") {
      variant.temperature = value;
    } else if (key == "temperature.scale") {
      variant.temperature_scale = parse_double(value);
      if (!variant.temperature_scale) throw ConfigError(fmt::format("--set {}={} is not a number", key, value));
    } else if (key == "temperature.length") {
      variant.temperature_length = token_number(key, value);
    } else {
      take_option(key, value);
    }
  }

  void take_option(const std::string& key, const std::string& value) {
    if (starts_with(key, "scaling.")) {
      scaling_options[key.substr(8)] = value;
    } else if (starts_with(key, "remap.")) {
      remap_options[key.substr(6)] = value;
    } else {
      throw ConfigError(
          fmt::format("--set {}: this command takes rope.base, rope.gguf, rope.layers, rope.table_dtype, scaling, "
                      "scaling.*, remap, remap.*, temperature and temperature.* only",
                      key));
    }
  }

  std::map<std::string, std::string> scaling_options, remap_options;
};

}  // namespace

checkpoint::PositionOverride position_override(const config::ModelVariant& settings,
                                               const checkpoint::DecoderConfig& declared, std::int64_t length_tokens) {
  checkpoint::PositionOverride change;
  change.scaling = settings.scaling;
  // What a model was trained with is no override.
  if (!settings.trained_here()) change.rope_base = settings.rope_base;
  // Not given: the file's own L0 stays, so that "declared" is what the file says.
  change.original_context = settings.original_context;
  const std::int64_t original = settings.original_context.value_or(checkpoint::default_original_context(declared));
  change.factor = settings.scaling_factor.value_or(automatic_factor(settings.scaling, length_tokens, original));
  change.length_policy = rope::parse_length_policy(settings.scaling_mode);
  change.frozen_length = settings.frozen_length.value_or(length_tokens);
  change.scaling_options = settings.scaling_options;
  change.layers = checkpoint::parse_rotation_layers(settings.rope_layers);
  change.gguf = checkpoint::parse_gguf_reading(settings.rope_gguf);
  change.table_dtype = rope::parse_float_format(settings.rope_table_dtype);
  if (settings.remap != "none") change.remap = checkpoint::RemapSpec{settings.remap, settings.remap_options};
  if (settings.temperature != "declared") {
    change.temperature =
        make_temperature(settings.temperature, settings.temperature_scale, settings.temperature_length);
  }
  return change;
}

checkpoint::DecoderConfig apply_position_settings(const checkpoint::DecoderConfig& config,
                                                  const std::vector<std::string>& settings, std::int64_t seq_len) {
  if (settings.empty()) return config;
  const ProbeSettings read(settings);
  checkpoint::DecoderConfig out = checkpoint::apply_override(config, position_override(read.variant, config, seq_len));
  const std::vector<std::string> idle = idle_position_keys({{&read.variant, out}});
  if (!idle.empty()) throw ConfigError("--set: " + join(idle, "\n--set: "));
  return out;
}

}  // namespace fathom::cli
