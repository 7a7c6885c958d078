#pragma once
// The position resolver for Hugging Face's config.json: any known model_type, whether this build can run its decoder
// or not.

#include <string>
#include <vector>

#include "harness/checkpoint/decoder_config.h"
#include "harness/checkpoint/json_reader.h"

namespace fathom::checkpoint {

/// Heads, windows, position scheme, scaling, softmax scale and query temperature of every layer, and the contexts; what
/// else a decoder needs (vocabulary, norms, MLP) is left alone. A file with position keys only is enough: what is
/// missing beside them is a warning.
///
/// \throws ModelError  naming the key of an unknown model_type, rope type or layer type, and of a value that is missing
/// or impossible.
/// \param unread  takes the position keys that are set and that this model_type does not read; without it, and for keys
/// that files hold in two spellings, they are warnings.
DecoderConfig resolve_hf_positions(const JsonObject& config, std::vector<std::string>* unread = nullptr);

/// The object that describes the decoder: the file's own, or its text_config. \param model_type  receives its type.
JsonObject hf_decoder_object(const JsonObject& config, std::string& model_type);

}  // namespace fathom::checkpoint
