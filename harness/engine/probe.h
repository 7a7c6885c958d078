#pragma once
// Per-position look at a model, for parity checks from outside. No torch in this header.

#include <memory>
#include <vector>

#include "harness/checkpoint/decoder_config.h"
#include "harness/core/types.h"
#include "harness/engine/torch_language_model.h"

namespace fathom::engine {

struct ProbeResult {
  std::vector<double> next_logprobs;  ///< [n - 1] natural logarithm of p(ids[i + 1] | ids[0..i])
  std::vector<TokenId> argmax;        ///< [n] most likely next id after each position
  std::vector<float> last_logits;     ///< [vocab] of the last position
};

/// One prefill of all ids; logits are made one chunk of positions at a time. \throws ModelError if a position is beyond
/// the model's table.
ProbeResult probe_logits(const std::shared_ptr<const LoadedWeights>& weights, const checkpoint::DecoderConfig& config,
                         const EngineOptions& options, const TokenIds& ids);

}  // namespace fathom::engine
