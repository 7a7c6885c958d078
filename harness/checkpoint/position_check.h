#pragma once

#include <string>

#include "harness/checkpoint/decoder_config.h"

namespace fathom::checkpoint {

/// Resolves the position once. \throws ModelError  in the file's name for what the scaling method or the temperature
/// refuses, and for more than 65536 rotated lanes.
void check_declared_position(const PositionSpec& position, const std::string& where);

}  // namespace fathom::checkpoint
