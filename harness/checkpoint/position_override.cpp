#include "harness/checkpoint/position_override.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/rope/position_remap.h"

namespace fathom::checkpoint {
namespace {

bool is_named(RotationLayers layers, const PositionSpec& position) {
  switch (layers) {
    case RotationLayers::kGlobal:
      return !position.own_rotation;
    case RotationLayers::kLocal:
      return position.own_rotation;
    case RotationLayers::kAll:
      return true;
  }
  return true;
}

bool any_rotating(const DecoderConfig& config, RotationLayers layers) {
  return std::any_of(config.layers.begin(), config.layers.end(), [layers](const LayerSpec& layer) {
    return layer.position.rotary_dim > 0 && is_named(layers, layer.position);
  });
}

bool asks_for_scaling(const PositionOverride& change) {
  return change.scaling && *change.scaling != "none" && *change.scaling != "declared";
}

bool asks_for_remap(const PositionOverride& change) {
  return change.remap && change.remap->method != "none";
}

/// The first thing that an override asks of rotating layers, as its user wrote it; empty if nothing.
std::string asked_of_rotation(const PositionOverride& change) {
  if (asks_for_scaling(change)) return "scaling = " + *change.scaling;
  if (asks_for_remap(change)) return "remap = " + change.remap->method;
  if (change.rope_base) return "rope.base = " + format_double(*change.rope_base);
  const auto& knobs = change.scaling_options.values();
  return knobs.empty() ? "" : "scaling." + knobs.begin()->first;
}

void require_rotation(const DecoderConfig& config, const PositionOverride& change) {
  if (asks_for_scaling(change) || asks_for_remap(change)) {
    throw ConfigError(
        fmt::format("{}: model '{}' has no rotating layer; only none applies", asked_of_rotation(change), config.name));
  }
  if (change.rope_base) {
    throw ConfigError(fmt::format("rope.base: model '{}' has no rotating layer; leave the key out", config.name));
  }
}

void require_named_layers(const DecoderConfig& config, const PositionOverride& change) {
  const bool has_local = any_rotating(config, RotationLayers::kLocal);
  if (change.layers != RotationLayers::kGlobal && !has_local) {
    throw ConfigError(fmt::format("rope.layers = {}: model '{}' has one rotation for all its layers; leave the key out",
                                  to_string(change.layers), config.name));
  }
  const std::string asked = asked_of_rotation(change);
  if (change.layers == RotationLayers::kGlobal && !asked.empty() && !any_rotating(config, RotationLayers::kGlobal)) {
    throw ConfigError(
        fmt::format("{}: the layers of model '{}' that rotate are all local, with a theta of their own; to change "
                    "those, say rope.layers = local",
                    asked, config.name));
  }
}

/// Knobs given at test time on top of those of the file.
OptionSource merged_options(const OptionSource& declared, const OptionSource& given) {
  if (given.values().empty()) return declared;
  std::map<std::string, std::string> values = declared.values();
  for (const auto& [name, value] : given.values()) values[name] = value;
  return OptionSource(given.where(), values);
}

void choose_reading(GgufReading reading, PositionSpec& position) {
  if (!position.gguf || position.gguf->in_force == reading) return;
  position.gguf->in_force = reading;
  position.scaling = reading == GgufReading::kStrict ? position.gguf->strict : position.gguf->lcpp;
}

void override_scaling(const DecoderConfig& config, const PositionOverride& change, PositionSpec& position) {
  ScalingSpec& scaling = position.scaling;
  const bool declared = !change.scaling || *change.scaling == "declared";
  if (change.original_context) {
    scaling.original_context = *change.original_context;
  } else if (scaling.method == "none" || scaling.original_context == 0) {
    scaling.original_context = default_original_context(config);
  }
  if (declared) {
    scaling.options = merged_options(scaling.options, change.scaling_options);
    if (!position.gguf) return;
    for (ScalingSpec* reading : {&position.gguf->strict, &position.gguf->lcpp}) {
      reading->original_context = scaling.original_context;
      reading->options = merged_options(reading->options, change.scaling_options);
    }
    return;
  }
  position.gguf.reset();  // the file's scaling is gone, however it is read
  scaling.options = change.scaling_options;
  if (*change.scaling == "base") {
    position.rope_base *= change.factor;
    scaling.method = "none";
    scaling.factor = 1;
  } else {
    scaling.method = *change.scaling;
    scaling.factor = rope::scalings().at(scaling.method).uses_factor ? change.factor : 1;
  }
}

void override_remap(const RemapSpec& remap, PositionSpec& position) {
  position.remap = remap;
  if (make_remap(position) == nullptr) return;
  // Remapped keys are cached before rotation, so there is nothing that could go stale.
  if (position.scaling.length_policy == rope::LengthPolicy::kHf && depends_on_length(position)) {
    throw ConfigError(fmt::format(
        "remap {}: scaling.mode = hf has no counterpart for remapped positions; use consistent", remap.method));
  }
}

void override_temperature(const DecoderConfig& config, const PositionOverride& change, PositionSpec& position) {
  position.temperature = *change.temperature;
  if (rope::counts_tokens(position.temperature.kind) && position.temperature.length == 0) {
    position.temperature.length = change.original_context.value_or(default_original_context(config));
  }
  rope::check_temperature(position.temperature);
}

void override_rotation(const DecoderConfig& config, const PositionOverride& change, PositionSpec& position) {
  position.table_dtype = change.table_dtype.value_or(position.table_dtype);
  choose_reading(change.gguf, position);
  position.scaling.length_policy = change.length_policy;
  position.scaling.frozen_length = change.frozen_length;
  if (is_named(change.layers, position)) {
    if (change.rope_base) position.rope_base = *change.rope_base;
    override_scaling(config, change, position);
    if (change.remap) override_remap(*change.remap, position);
  }
  resolve_frequencies(position, 1);  // what the method refuses is refused here, not in the middle of a run
}

}  // namespace

std::string_view to_string(RotationLayers layers) {
  switch (layers) {
    case RotationLayers::kGlobal:
      return "global";
    case RotationLayers::kLocal:
      return "local";
    case RotationLayers::kAll:
      return "all";
  }
  return "";
}

RotationLayers parse_rotation_layers(std::string_view name) {
  for (const RotationLayers layers : {RotationLayers::kGlobal, RotationLayers::kLocal, RotationLayers::kAll}) {
    if (to_string(layers) == name) return layers;
  }
  throw ConfigError(fmt::format("rope.layers = {} must be global, local or all", name));
}

DecoderConfig apply_override(const DecoderConfig& config, const PositionOverride& change) {
  if (any_rotating(config, RotationLayers::kAll)) {
    require_named_layers(config, change);
  } else {
    require_rotation(config, change);
  }
  if (!(change.factor >= 1)) {
    throw ConfigError(fmt::format("scaling.factor = {} must be at least 1", format_double(change.factor)));
  }
  DecoderConfig out = config;
  for (LayerSpec& layer : out.layers) {
    if (change.temperature) override_temperature(config, change, layer.position);
    if (layer.position.rotary_dim > 0) override_rotation(config, change, layer.position);
  }
  return out;
}

}  // namespace fathom::checkpoint
