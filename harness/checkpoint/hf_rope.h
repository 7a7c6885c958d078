#pragma once
// The rope block of a Hugging Face config.json: `rope_parameters` (version 5), or `rope_scaling` with `rope_theta` and
// `partial_rotary_factor` beside it (version 4); one block for the model, or one per layer type.

#include <cstdint>
#include <string>
#include <vector>

#include "harness/checkpoint/hf_family.h"
#include "harness/checkpoint/layer_patterns.h"

namespace fathom::checkpoint {

/// What decides one layer's rotation besides the file.
struct HfRopeLayer {
  LayerKind kind = LayerKind::kFull;
  std::int64_t d_head = 0;           ///< width that partial_rotary_factor refers to
  std::int64_t claimed_context = 0;  ///< max_position_embeddings, 0 where the file has none
};

/// Theta, rotated width, layout and scaling of one layer; query temperature where the family takes it from the block.
/// Priority as in transformers: the block, then keys beside it, then the class.
/// \param warnings  receives keys of the block that nobody reads, and contradictions that transformers lives with.
/// \throws ModelError  naming key and value of an unknown type, a missing or contradictory key.
PositionSpec read_hf_rope(const JsonObject& config, const HfFamily& family, const HfRopeLayer& layer,
                          std::vector<std::string>& warnings);

/// The rope block in force for a kind of layer; nothing if the file has none. \param name  receives its name.
std::optional<JsonObject> find_hf_rope_block(const JsonObject& config, const HfFamily& family, LayerKind kind,
                                             std::string& name);

}  // namespace fathom::checkpoint
