#pragma once
// The scaling method of a GGUF file: `ARCH.rope.scaling.*` and the tensors rope_freqs, rope_factors_short and
// rope_factors_long.

#include <string>
#include <vector>

#include "harness/checkpoint/decoder_config.h"
#include "harness/checkpoint/gguf_family.h"
#include "harness/checkpoint/gguf_file.h"

namespace fathom::checkpoint {

/// Both readings of the scaling: what the configuration of the model's maker means by these keys, and what llama.cpp
/// computes from them.
///
/// \param warnings  receives what neither reading honours, and a scaling that the file should have and lacks.
/// \throws ModelError  naming the key of an unknown type or an impossible value.
GgufScalings read_gguf_scaling(const GgufFile& file, const GgufFamily& family, std::int64_t claimed_context,
                               std::vector<std::string>& warnings);

}  // namespace fathom::checkpoint
