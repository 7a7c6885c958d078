#include "harness/engine/probe.h"

#include <fmt/format.h>

#include <numeric>

#include "harness/core/error.h"
#include "harness/engine/network.h"
#include "harness/kernels/log_softmax.h"

namespace fathom::engine {

ProbeResult probe_logits(const std::shared_ptr<const LoadedWeights>& weights, const checkpoint::DecoderConfig& config,
                         const EngineOptions& options, const TokenIds& ids) {
  Network network(weights, config);
  if (!options.encoder_ids.empty()) network.set_encoder_input(options.encoder_ids);
  const auto n_ids = static_cast<std::int64_t>(ids.size());
  const std::int64_t vocab = network.config().vocab_size;
  if (ids.empty()) throw ModelError("model: there are no ids to look at");
  for (const TokenId id : ids) {
    if (id < 0 || id >= vocab)
      throw ModelError(fmt::format("model: token id {} is outside the vocabulary of 0..{}", id, vocab - 1));
  }
  if (const auto limit = network.max_positions(); limit && n_ids > *limit) {
    throw ModelError(fmt::format("model: {} ids are more than the {} rows of the position table", n_ids, *limit));
  }
  ProbeResult result;
  KvCache cache = network.make_cache();
  cache.reserve(n_ids);
  for (std::int64_t begin = 0; begin < n_ids; begin = cache.length()) {
    if (options.stop != nullptr && options.stop->stop_requested())
      throw Interrupted("stopped while the model was computing");
    ForwardPiece piece;
    piece.ids = ids.data() + begin;
    piece.n_tokens = chunk_end(begin, n_ids) - begin;
    piece.first_position = begin;
    piece.total_len = n_ids;
    piece.cache = &cache;
    piece.wanted.resize(static_cast<std::size_t>(piece.n_tokens));
    std::iota(piece.wanted.begin(), piece.wanted.end(), std::int64_t{0});
    network.forward({piece}, [&](std::size_t, std::int64_t offset, const float* logits) {
      const std::int64_t position = begin + offset;
      result.argmax.push_back(static_cast<TokenId>(kernels::argmax(logits, vocab)));
      if (position + 1 < n_ids) {
        const TokenId next = ids[static_cast<std::size_t>(position + 1)];
        result.next_logprobs.push_back(static_cast<double>(logits[next]) - kernels::log_sum_exp(logits, vocab));
      } else {
        result.last_logits.assign(logits, logits + vocab);
      }
    });
  }
  return result;
}

}  // namespace fathom::engine
