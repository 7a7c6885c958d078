#pragma once
// The parts of Hugging Face's config.json that decoders share, in the spelling of versions 4 and 5.

#include "harness/checkpoint/decoder_config.h"
#include "harness/checkpoint/json_reader.h"

namespace fathom::checkpoint {

/// Sizes, heads, norm and activation: hidden_size, num_hidden_layers, num_attention_heads, num_key_value_heads,
/// head_dim, intermediate_size, vocab_size, max_position_embeddings, rms_norm_eps, hidden_act, tie_word_embeddings. The
/// layers are alike. \throws ModelError  naming the key that is missing or out of range.
DecoderConfig read_hf_decoder(const JsonObject& config);

/// Rotation of a whole-model rope block: `rope_parameters` (5) or `rope_scaling` with `rope_theta` beside it (4).
/// \param d_head           width that partial_rotary_factor refers to.
/// \param claimed_context  max_position_embeddings.
/// \param warnings         receives keys of the block that no one reads.
/// \throws ModelError  naming key and value of an unknown type, a missing or contradictory key.
PositionSpec read_hf_rope(const JsonObject& config, std::int64_t d_head, std::int64_t claimed_context,
                          std::vector<std::string>& warnings);

}  // namespace fathom::checkpoint
