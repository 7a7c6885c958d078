#pragma once
// Position scheme, softmax scale and query temperature of one layer: rules named in data/hf_families.json.

#include <cstdint>
#include <string>
#include <vector>

#include "harness/checkpoint/hf_family.h"
#include "harness/checkpoint/layer_patterns.h"

namespace fathom::checkpoint {

struct HfLayerContext {
  const JsonObject& config;
  const HfFamily& family;
  LayerKind kind;
  bool rotates;
  std::int64_t index;
  std::int64_t claimed_context;  ///< 0 where the file has none
};

/// Fills layer.position, layer.softmax_scale and the query temperature; heads and window are there already.
/// \throws ModelError  naming the key that is missing or impossible.
void read_hf_scheme(const HfLayerContext& context, LayerSpec& layer, std::vector<std::string>& warnings);

}  // namespace fathom::checkpoint
