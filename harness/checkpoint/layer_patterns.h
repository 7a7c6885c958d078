#pragma once
// Which layers of a decoder see everything, a window or a chunk, and which of them rotate: rules named in
// data/hf_families.json, each reading the keys of a config.json that it needs.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/checkpoint/json_reader.h"

namespace fathom::checkpoint {

enum class LayerKind {
  kFull,       ///< softmax attention over everything before
  kSliding,    ///< over a window
  kChunked,    ///< over the tokens of the same chunk
  kNoSoftmax,  ///< linear attention, state space, convolution, or no attention at all
};

std::string_view to_string(LayerKind kind);  // "full", "sliding", "chunked", "no_softmax"

/// One kind per layer, as the class gives it to a file without a list `layer_types`.
/// \param rule  name of a rule, for example "window_pattern".
/// \throws ModelError  naming the key of a list of the wrong length or with an unknown entry.
std::vector<LayerKind> layer_kinds_of_rule(const JsonObject& config, std::string_view rule, std::int64_t n_layers);
/// The same, but that a list `layer_types` in the file wins over the rule.
std::vector<LayerKind> read_layer_kinds(const JsonObject& config, std::string_view rule, std::int64_t n_layers);

/// Number of layers that a list of the file speaks of; nothing without such a list.
std::optional<std::int64_t> listed_layer_count(const JsonObject& config);

/// True where a layer applies its rotation; never for kNoSoftmax.
/// \throws ModelError  as above.
std::vector<bool> read_rotating_layers(const JsonObject& config, std::string_view rule,
                                       const std::vector<LayerKind>& kinds);

}  // namespace fathom::checkpoint
