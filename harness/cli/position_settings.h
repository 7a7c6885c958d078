#pragma once
// `--set scaling=yarn --set scaling.factor=4` on the probes: the same keys as [model] of a config, applied to one
// checkpoint.

#include <cstdint>
#include <string>
#include <vector>

#include "harness/checkpoint/decoder_config.h"

namespace fathom::cli {

/// \param settings  `key=value` texts; keys rope.base, scaling, scaling.factor, scaling.original_context, scaling.mode
/// and the method's own. \param seq_len   what factor `auto` is taken from. \throws ConfigError for other keys.
checkpoint::DecoderConfig apply_position_settings(const checkpoint::DecoderConfig& config,
                                                  const std::vector<std::string>& settings, std::int64_t seq_len);

}  // namespace fathom::cli
