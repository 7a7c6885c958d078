#pragma once
// The parts of GGUF metadata that decoders share.

#include "harness/checkpoint/decoder_config.h"
#include "harness/checkpoint/gguf_file.h"

namespace fathom::checkpoint {

/// Sizes, heads and norm from `ARCH.block_count`, `embedding_length`, `context_length`, `attention.head_count` (also
/// per layer), …, and the vocabulary from the embedding's rows. \throws ModelError  naming the key that is missing or
/// out of range.
DecoderConfig read_gguf_decoder(const GgufFile& file, const std::string& arch);

/// Rotation from `ARCH.rope.*` and the tensors rope_freqs, rope_factors_short and rope_factors_long, as llama.cpp
/// computes it. \param layout  of the family: it does not stand in the file.
PositionSpec read_gguf_rope(const GgufFile& file, const std::string& arch, RopeLayout layout, DecoderConfig& config);

/// A metadata integer. \throws ModelError  if absent, or outside low..high.
std::int64_t required_gguf_integer(const GgufFile& file, const std::string& key, std::int64_t low, std::int64_t high);

}  // namespace fathom::checkpoint
