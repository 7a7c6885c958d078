#pragma once
// The parts of GGUF metadata that decoders share.

#include <string>

#include "harness/checkpoint/decoder_config.h"
#include "harness/checkpoint/gguf_file.h"

namespace fathom::checkpoint {

/// The resolved positions (gguf_positions.h) with what running a decoder needs besides: norm, feed-forward widths, the
/// vocabulary from the embedding's rows, and from the tensors that are there the biases, the norms of queries and keys,
/// and whether the head is the embedding.
/// \throws ModelError  naming the key that is missing or out of range, or a layer that is not plain softmax attention.
DecoderConfig read_gguf_decoder(const GgufFile& file);

/// The experts that <architecture>.expert_count and its kin declare, for every layer; softmax over all, then the best,
/// renormalised. Nothing where there are none. \param d_ff_key  holds the width of an expert, after the architecture.
void read_gguf_experts(const GgufFile& file, const std::string& d_ff_key, DecoderConfig& config);

/// \throws ModelError  if the key is there and says something else than 0, 1 or false.
void refuse_gguf_key(const GgufFile& file, const std::string& key);

}  // namespace fathom::checkpoint
