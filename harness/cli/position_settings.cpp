#include "harness/cli/position_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/config/parse.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::cli {
namespace {

constexpr std::int64_t kMaxContextTokens = INT64_C(1) << 30;
constexpr double kMaxFactor = 1e6;

double positive_number(const std::string& key, const std::string& value) {
  const auto number = parse_double(value);
  if (!number || *number <= 0) throw ConfigError(fmt::format("--set {}={} is not a positive number", key, value));
  return *number;
}

}  // namespace

checkpoint::DecoderConfig apply_position_settings(const checkpoint::DecoderConfig& config,
                                                  const std::vector<std::string>& settings, std::int64_t seq_len) {
  if (settings.empty()) return config;
  checkpoint::PositionOverride change;
  std::map<std::string, std::string> method_options;
  std::set<std::string> seen;
  std::optional<double> factor;
  for (const std::string& text : settings) {
    config::Setting setting = config::parse_setting(text);
    if (starts_with(setting.key, "model.")) setting.key.erase(0, 6);
    if (!seen.insert(setting.key).second) throw ConfigError(fmt::format("--set {} is given twice", setting.key));
    const auto& [key, value] = setting;
    if (key == "scaling") {
      change.scaling = value;
    } else if (key == "rope.base") {
      change.rope_base = positive_number(key, value);
    } else if (key == "scaling.factor") {
      if (value != "auto") factor = positive_number(key, value);
      if (factor.value_or(1) > kMaxFactor)
        throw ConfigError(fmt::format("--set {}={} is above {}", key, value, kMaxFactor));
    } else if (key == "scaling.original_context") {
      change.original_context = parse_int(value);
      if (!change.original_context || *change.original_context < 1 || *change.original_context > kMaxContextTokens) {
        throw ConfigError(fmt::format("--set {}={} is not an integer in 1..{}", key, value, kMaxContextTokens));
      }
    } else if (key == "scaling.mode") {
      change.length_policy = rope::parse_length_policy(value);
      change.frozen_length = seq_len;
    } else if (starts_with(key, "scaling.")) {
      method_options[key.substr(8)] = value;
    } else {
      throw ConfigError(fmt::format("--set {}: this command takes rope.base, scaling and scaling.* only", key));
    }
  }
  const auto original = static_cast<double>(
      std::max<std::int64_t>(1, change.original_context.value_or(checkpoint::default_original_context(config))));
  const bool length_driven = change.scaling && *change.scaling == "dynamic";
  change.factor = factor.value_or(length_driven ? 1.0 : std::max(1.0, static_cast<double>(seq_len) / original));
  change.scaling_options = OptionSource("--set scaling.*:", std::move(method_options));
  return checkpoint::apply_override(config, change);
}

}  // namespace fathom::cli
