#pragma once
// The parts of GGUF metadata that decoders share.

#include "harness/checkpoint/decoder_config.h"
#include "harness/checkpoint/gguf_file.h"

namespace fathom::checkpoint {

/// The resolved positions (gguf_positions.h) with what running a decoder needs besides: norm, feed-forward widths, and
/// the vocabulary from the embedding's rows.
/// \throws ModelError  naming the key that is missing or out of range, or a layer that is not plain softmax attention.
DecoderConfig read_gguf_decoder(const GgufFile& file);

}  // namespace fathom::checkpoint
