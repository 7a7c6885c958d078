#pragma once
// Position settings changed at test time, on any model with rotation; the weights stay.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "harness/checkpoint/decoder_config.h"

namespace fathom::checkpoint {

/// Rotating layers that theta, scaling and remap of an override act on. Layers of a type with a rotation of its own
/// (PositionSpec::own_rotation, Gemma-3's sliding layers) are local, all others global.
enum class RotationLayers { kGlobal, kLocal, kAll };

/// "global", "local", "all".
std::string_view to_string(RotationLayers layers);
/// \throws ConfigError  for another name.
RotationLayers parse_rotation_layers(std::string_view name);

/// What a user may change; absent members leave what the file says.
struct PositionOverride {
  std::optional<std::string> scaling;  ///< method name, "declared" (what the file says) or "base" (theta times factor)
  double factor = 1;
  std::optional<std::int64_t> original_context;
  std::optional<double> rope_base;
  RotationLayers layers = RotationLayers::kGlobal;
  GgufReading gguf = GgufReading::kStrict;  ///< where the readings differ and the declared scaling stays
  rope::LengthPolicy length_policy = rope::LengthPolicy::kConsistent;
  std::int64_t frozen_length = 0;
  OptionSource scaling_options;
  std::optional<RemapSpec> remap;
  std::optional<rope::QueryTemperature> temperature;  ///< where its kind counts tokens, length 0 = the original context
  std::optional<rope::FloatFormat> table_dtype;
};

/// Applies an override: theta, scaling and remap to the rotating layers that `layers` names, length policy, table
/// format and the reading of a GGUF file to every rotating layer, the temperature to every layer. "base" multiplies
/// theta and drops a declared method. The original context of a new method is the override's, else the declared
/// method's, else the trained context, else the claimed one.
///
/// \throws ConfigError  if no layer rotates and a scaling or remap other than none is asked for; if `layers` names none
/// of the rotating layers, or tells layers apart that have one rotation; and for what a method, remap or temperature
/// refuses.
DecoderConfig apply_override(const DecoderConfig& config, const PositionOverride& change);

}  // namespace fathom::checkpoint
