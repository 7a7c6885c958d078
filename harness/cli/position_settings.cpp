#include "harness/cli/position_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/config/parse.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::cli {
namespace {

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
  std::optional<double> factor;
  for (const std::string& text : settings) {
    config::Setting setting = config::parse_setting(text);
    if (starts_with(setting.key, "model.")) setting.key.erase(0, 6);
    const auto& [key, value] = setting;
    if (key == "scaling") {
      change.scaling = value;
    } else if (key == "rope.base") {
      change.rope_base = positive_number(key, value);
    } else if (key == "scaling.factor") {
      if (value != "auto") factor = positive_number(key, value);
    } else if (key == "scaling.original_context") {
      change.original_context = static_cast<std::int64_t>(positive_number(key, value));
    } else if (key == "scaling.mode") {
      change.length_policy = rope::parse_length_policy(value);
      change.frozen_length = seq_len;
    } else if (starts_with(key, "scaling.")) {
      method_options[key.substr(8)] = value;
    } else {
      throw ConfigError(fmt::format("--set {}: this command takes rope.base, scaling and scaling.* only", key));
    }
  }
  const auto original =
      static_cast<double>(change.original_context.value_or(std::max<std::int64_t>(1, config.claimed_context)));
  const bool length_driven = change.scaling && *change.scaling == "dynamic";
  change.factor = factor.value_or(length_driven ? 1.0 : std::max(1.0, static_cast<double>(seq_len) / original));
  change.scaling_options = OptionSource("--set scaling.*:", std::move(method_options));
  return checkpoint::apply_override(config, change);
}

}  // namespace fathom::cli
