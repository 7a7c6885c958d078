#pragma once
// What a command's MODEL argument names, where positions are enough: a checkpoint, a bare config.json, or a preset.

#include <string>

#include "harness/checkpoint/decoder_config.h"

namespace fathom::cli {

/// A path that exists wins over a preset of the same name. \throws ConfigError  for a name that is neither, with the
/// nearest preset; ModelError, DataError  for a file that cannot be read.
checkpoint::DecoderConfig read_model_or_preset(const std::string& name);

}  // namespace fathom::cli
