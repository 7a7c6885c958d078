#pragma once
// The parts of Hugging Face's config.json that decoders share, in the spelling of versions 4 and 5.

#include "harness/checkpoint/decoder_config.h"
#include "harness/checkpoint/json_reader.h"

namespace fathom::checkpoint {

/// The resolved positions (hf_positions.h) with what running a decoder needs besides: hidden_size, vocab_size,
/// intermediate_size, rms_norm_eps, hidden_act, tie_word_embeddings. Here no size may be left out.
/// \throws ModelError  naming the key that is missing or out of range.
DecoderConfig read_hf_decoder(const JsonObject& config);

/// Refuses a file that asks for something the class of its model_type does not do, and that transformers would
/// silently ignore. \param class_name  what `architectures` must hold, where it is given.
/// \throws ModelError  naming the key.
void refuse_foreign_keys(const JsonObject& config, const std::string& class_name,
                         const std::vector<std::string>& foreign_keys);

}  // namespace fathom::checkpoint
