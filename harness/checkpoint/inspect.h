#pragma once
// What was resolved from a checkpoint, as JSON for other programs.

#include <cstdint>
#include <string>
#include <vector>

#include "harness/checkpoint/decoder_config.h"

namespace fathom::checkpoint {

/// What the config warns of, and where a GGUF file can be read in two ways one line that says what differs, by how much
/// at `seq_len` tokens, and which reading is in force.
std::vector<std::string> position_warnings(const DecoderConfig& config, std::int64_t seq_len);

/// {"name","architecture","claimed_context","trained_context","n_layers","layers":[{"index","position","layout","rotary_dim","inv_freq",
/// "attention_factor","softmax_scale","window","n_heads","n_kv_heads","d_head","parameters"}],"warnings"}. What does
/// not apply or is unknown is null (layout without rotation, window without one, the claim of a file without any).
/// `position` is "none" for layers without softmax attention. `softmax_scale` is the product in force; `parameters`
/// holds the scheme's own: base, scaling and its declared options, table format, slopes, buckets, extent, query
/// temperature. \param seq_len  decides the frequencies of length-dependent methods.
std::string inspect_json(const DecoderConfig& config, std::int64_t seq_len);

}  // namespace fathom::checkpoint
