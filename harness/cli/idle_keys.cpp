#include "harness/cli/idle_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "harness/core/text_util.h"

namespace fathom::cli {
namespace {

using checkpoint::PositionSpec;

bool any_layer(const ResolvedVariant& variant, const std::function<bool(const PositionSpec&)>& holds) {
  return std::any_of(variant.config.layers.begin(), variant.config.layers.end(),
                     [&](const checkpoint::LayerSpec& layer) { return holds(layer.position); });
}

bool scales_with_length(const ResolvedVariant& variant) {
  return any_layer(variant, [](const PositionSpec& position) { return checkpoint::scales_with_length(position); });
}

/// L0 shapes scaling methods and their automatic factor, the defaults of remaps, and what temperatures count in.
bool uses_original_context(const ResolvedVariant& variant) {
  const bool counted = any_layer(variant, [](const PositionSpec& position) {
    return position.rotary_dim > 0 && (position.scaling.method != "none" || position.remap.method != "none");
  });
  const bool temperature =
      any_layer(variant, [](const PositionSpec& position) { return rope::counts_tokens(position.temperature.kind); });
  return counted || (variant.settings->scaling == "base" && !variant.settings->scaling_factor) ||
         (temperature && !variant.settings->temperature_length);
}

bool changes_rotation(const config::ModelVariant& settings) {
  return settings.rope_base || settings.scaling != "declared" || settings.original_context ||
         settings.remap != "none" || !settings.scaling_options.values().empty();
}

/// A key, whether a variant gives it, and whether it changes something there.
struct KeyUse {
  const char* key;
  std::function<bool(const config::ModelVariant&)> given;
  std::function<bool(const ResolvedVariant&)> works;
  const char* needs;
};

bool has_temperature(const ResolvedVariant& variant, bool (*acts)(rope::TemperatureKind)) {
  return any_layer(variant, [acts](const PositionSpec& position) { return acts(position.temperature.kind); });
}

const std::vector<KeyUse>& key_uses() {
  static const std::vector<KeyUse> kUses = {
      {"scaling.mode", [](const auto& s) { return s.scaling_mode != "consistent"; }, scales_with_length,
       "a scaling method that depends on the length, such as dynamic or longrope"},
      {"scaling.factor", [](const auto& s) { return s.scaling_factor.has_value(); },
       [](const auto& v) { return v.settings->scaling != "none" && v.settings->scaling != "declared"; },
       "a scaling method named by scaling"},
      {"scaling.frozen_length", [](const auto& s) { return s.frozen_length.has_value(); },
       [](const auto& v) { return v.settings->scaling_mode == "frozen" && scales_with_length(v); },
       "scaling.mode = frozen and a scaling method that depends on the length"},
      {"scaling.original_context", [](const auto& s) { return s.original_context.has_value(); }, uses_original_context,
       "a scaling method, a remap, or a temperature that counts tokens"},
      {"temperature.scale", [](const auto& s) { return s.temperature_scale.has_value(); },
       [](const auto& v) { return has_temperature(v, rope::uses_scale); },
       "temperature = llama4, ministral3 or uniform"},
      {"temperature.length", [](const auto& s) { return s.temperature_length.has_value(); },
       [](const auto& v) { return has_temperature(v, rope::counts_tokens); },
       "temperature = llama4, ministral3 or log_n"},
      {"rope.layers", [](const auto& s) { return s.rope_layers != "global"; },
       [](const auto& v) { return changes_rotation(*v.settings); }, "rope.base, scaling or remap"},
      {"rope.gguf", [](const auto& s) { return s.rope_gguf != "strict"; },
       [](const auto& v) { return any_layer(v, [](const auto& position) { return position.gguf.has_value(); }); },
       "a GGUF file whose declared scaling llama.cpp computes in another way than its maker means it"},
      {"rope.table_dtype", [](const auto& s) { return s.rope_table_dtype != "float32"; },
       [](const auto& v) { return any_layer(v, [](const auto& position) { return position.rotary_dim > 0; }); },
       "position = rope, or a checkpoint that rotates"},
      {"rope.side", [](const auto& s) { return s.trained_here() && s.rope_side != "prefix"; },
       [](const auto& v) { return v.settings->rope_partial < 1; }, "rope.partial below 1"},
  };
  return kUses;
}

}  // namespace

std::vector<std::string> idle_position_keys(const std::vector<ResolvedVariant>& variants) {
  std::vector<std::string> problems;
  for (const KeyUse& use : key_uses()) {
    const auto given =
        std::find_if(variants.begin(), variants.end(), [&](const auto& v) { return use.given(*v.settings); });
    if (given == variants.end()) continue;
    const bool works = std::any_of(variants.begin(), variants.end(),
                                   [&](const auto& v) { return use.given(*v.settings) && use.works(v); });
    if (works) continue;
    const std::string& section = given->settings->section;
    problems.push_back(fmt::format("[model{}] {} changes nothing in this run: it needs {}; leave the key out",
                                   section.empty() ? "" : "." + section, use.key, use.needs));
  }
  return problems;
}

}  // namespace fathom::cli
