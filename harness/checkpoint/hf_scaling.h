#pragma once
// The scaling method that a rope block declares.

#include <cstdint>
#include <string>
#include <vector>

#include "harness/checkpoint/hf_family.h"

namespace fathom::checkpoint {

/// \param config           for original_max_position_embeddings beside the block (Phi-3), which wins over the block's.
/// \param name             of the block, for messages.
/// \param claimed_context  max_position_embeddings, 0 where the file has none.
/// \throws ModelError  naming key and value of an unknown type, a missing or contradictory key.
ScalingSpec read_hf_scaling(const JsonObject& config, const JsonObject& block, const HfFamily& family,
                            const std::string& name, std::int64_t claimed_context, std::vector<std::string>& warnings);

/// Type of a block under its canonical name: `type` and `rope_type` are one key, "su" is "longrope", …
/// \throws ModelError  for a type that is unknown, or two that differ.
std::string read_hf_rope_type(const JsonObject& block, const HfFamily& family);

}  // namespace fathom::checkpoint
