#pragma once
// The decoder as the engine uses it: pieces of sequences in, logits of chosen positions out. No torch in this header.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "harness/checkpoint/decoder_config.h"
#include "harness/core/types.h"
#include "harness/engine/kv_cache.h"
#include "harness/engine/torch_language_model.h"

namespace fathom::engine {

/// Consecutive tokens of one sequence on their way through the network.
struct ForwardPiece {
  const TokenId* ids = nullptr;
  std::int64_t n_tokens = 0;
  std::int64_t first_position = 0;   ///< tokens that the cache holds already
  std::int64_t total_len = 0;        ///< length that a length-dependent scheme shall use
  KvCache* cache = nullptr;          ///< with room for first_position + n_tokens; its length is set afterwards
  std::vector<std::int64_t> wanted;  ///< offsets in the piece whose logits are asked for
};

/// Called once per wanted position, in order: index of the piece, offset in it, [vocab] logits that live for the call.
using LogitConsumer = std::function<void(std::size_t piece, std::int64_t offset, const float* logits)>;

class Network {
 public:
  /// \throws ModelError  if the rotation in force differs from resolve_frequencies() (see make_language_model).
  Network(std::shared_ptr<const LoadedWeights> weights, const checkpoint::DecoderConfig& config);
  ~Network();

  /// What an encoder-decoder's encoder reads; every later pass attends to it. \throws ModelError  if there is no
  /// encoder.
  void set_encoder_input(const TokenIds& ids);

  /// One pass of all pieces, packed. \throws std::bad_alloc
  void forward(const std::vector<ForwardPiece>& pieces, const LogitConsumer& consumer);

  /// Identity of everything that changes with the sequence length, all layers: keys made under one identity must not
  /// meet queries of another.
  std::uint64_t rotation_state(std::int64_t total_len) const;
  std::optional<std::int64_t> max_positions() const;
  const checkpoint::DecoderConfig& config() const { return config_; }
  KvCache make_cache() const;
  const LoadedWeights& weights() const { return *weights_; }

 private:
  struct Impl;
  std::shared_ptr<const LoadedWeights> weights_;
  checkpoint::DecoderConfig config_;
  std::unique_ptr<Impl> impl_;
};

/// True in scaling mode hf: cached keys keep the rotation they were written with, whatever the length becomes.
bool keeps_stale_keys(const checkpoint::DecoderConfig& config);

/// Position at which the chunk that begins at `begin` ends: chunk borders stand at fixed positions, so that the same
/// tokens always meet in the same products, whether a prefix was shared or not.
std::int64_t chunk_end(std::int64_t begin, std::int64_t n_tokens);

}  // namespace fathom::engine
