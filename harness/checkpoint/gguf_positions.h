#pragma once
// The position resolver for GGUF metadata, as llama.cpp reads it: any known architecture, whether this build can run
// its decoder or not.

#include "harness/checkpoint/decoder_config.h"
#include "harness/checkpoint/gguf_file.h"

namespace fathom::checkpoint {

/// Heads, windows, position scheme, scaling, softmax scale and query temperature of every layer, and the contexts.
/// \throws ModelError  naming the key that is missing or impossible, or the architecture that is unknown.
DecoderConfig resolve_gguf_positions(const GgufFile& file);

/// A metadata integer. \throws ModelError  if absent, or outside low..high.
std::int64_t required_gguf_integer(const GgufFile& file, const std::string& key, std::int64_t low, std::int64_t high);

/// A value that a file gives once for all layers, or as a list with one entry per layer.
/// \throws ModelError  for a missing key without fallback, a list of another length, a value outside low..2^28.
std::vector<std::int64_t> gguf_layer_integers(const GgufFile& file, const std::string& key, std::size_t n_layers,
                                              std::int64_t low, std::optional<std::vector<std::int64_t>> fallback);

}  // namespace fathom::checkpoint
