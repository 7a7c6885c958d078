#pragma once
// Time and memory of one attention layer by position scheme. No torch in this header.

#include <cstdint>
#include <optional>
#include <string>

#include "harness/checkpoint/decoder_config.h"

namespace fathom::engine {

struct AttentionCost {
  double seconds = 0;  ///< best of the rounds
  std::optional<std::int64_t>
      extra_bytes;  ///< most memory on top of inputs and cache; nothing where the kernel hides it
};

/// A decoder of one layer, 8 heads of 64, with a scheme at its defaults and, where `remap` is not "none", a remap of
/// its positions; the original context is a quarter of the length.
checkpoint::DecoderConfig one_layer_config(const std::string& scheme, const std::string& remap,
                                           std::int64_t length_tokens);

/// One pass of the first layer's attention over `length_tokens` drawn vectors: rotation, scores, softmax and values in
/// float32, in chunks of 512 queries through a KV cache. The peak counter is reset before each round, so a scheme that
/// allocated [length x length] would show: 1 GiB a head at 16K.
AttentionCost measure_attention(const checkpoint::DecoderConfig& config, std::int64_t length_tokens);

}  // namespace fathom::engine
