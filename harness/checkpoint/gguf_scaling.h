#pragma once
// The scaling method of a GGUF file: `ARCH.rope.scaling.*` and the tensors rope_freqs, rope_factors_short and
// rope_factors_long.

#include <string>
#include <vector>

#include "harness/checkpoint/decoder_config.h"
#include "harness/checkpoint/gguf_family.h"
#include "harness/checkpoint/gguf_file.h"

namespace fathom::checkpoint {

/// \param warnings  receives what llama.cpp reads otherwise than the model's own configuration.
/// \throws ModelError  naming the key of an unknown type or an impossible value.
ScalingSpec read_gguf_scaling(const GgufFile& file, const GgufFamily& family, std::int64_t claimed_context,
                              std::vector<std::string>& warnings);

}  // namespace fathom::checkpoint
