#pragma once
// What was resolved from a checkpoint, as JSON for other programs.

#include <cstdint>
#include <string>

#include "harness/checkpoint/decoder_config.h"

namespace fathom::checkpoint {

/// {"name","architecture","claimed_context","trained_context","n_layers","layers":[{"index","position","layout","rotary_dim","inv_freq",
/// "attention_factor","softmax_scale","window","n_heads","n_kv_heads","d_head","parameters"}],"warnings"}. What does
/// not apply is null (layout without rotation, window without one). `softmax_scale` is the product in force;
/// `parameters` holds the scheme's own. \param seq_len  decides the frequencies of length-dependent methods.
std::string inspect_json(const DecoderConfig& config, std::int64_t seq_len);

}  // namespace fathom::checkpoint
