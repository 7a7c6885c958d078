#pragma once
// `--set scaling=yarn --set scaling.factor=4` on the probes: the same keys as [model] of a config, applied to one
// checkpoint.

#include <cstdint>
#include <string>
#include <vector>

#include "harness/checkpoint/position_override.h"
#include "harness/config/sweep.h"

namespace fathom::cli {

/// \param settings  `key=value` texts; keys rope.base, rope.gguf, rope.layers, rope.table_dtype, scaling, scaling.*,
///                  remap, remap.*, temperature, temperature.*.
/// \param seq_len   what factor `auto` and mode frozen are taken from.
/// \throws ConfigError for other keys, and for keys that change nothing here.
checkpoint::DecoderConfig apply_position_settings(const checkpoint::DecoderConfig& config,
                                                  const std::vector<std::string>& settings, std::int64_t seq_len);

/// The change that a variant's settings ask of a model at a tested length. An automatic factor is length / L0, at least
/// 1 (dynamic takes the length itself: 1). \throws ConfigError  for a mode or temperature that does not exist, and for
/// temperature uniform without a scale.
checkpoint::PositionOverride position_override(const config::ModelVariant& settings,
                                               const checkpoint::DecoderConfig& declared, std::int64_t length_tokens);

}  // namespace fathom::cli
