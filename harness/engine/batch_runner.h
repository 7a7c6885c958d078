#pragma once
// Answers a batch of requests with a Network: shared prefixes, chunked prefill, greedy decoding of many sequences at
// once, scoring of continuations.

#include <cstdint>
#include <vector>

#include "harness/engine/network.h"
#include "harness/lm/language_model.h"

namespace fathom::engine {

struct BatchLimits {
  std::int64_t batch_tokens = 16384;  ///< prompt tokens whose caches are held at a time (one request is always allowed)
  std::size_t cache_bytes = std::size_t{1} << 29;  ///< and the bytes those caches may take
  bool share_prefixes = true;
  const StopToken* stop = nullptr;
};

/// \throws Interrupted  between passes, if asked to stop.
std::vector<lm::Completion> run_batch(Network& network, const std::vector<lm::Request>& batch,
                                      const BatchLimits& limits);

}  // namespace fathom::engine
