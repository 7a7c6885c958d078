#pragma once
// LanguageModel over the decoder: batching, KV cache, prefix sharing. No torch in this header.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "harness/checkpoint/checkpoint.h"
#include "harness/checkpoint/decoder_config.h"
#include "harness/core/log.h"
#include "harness/lm/language_model.h"

namespace fathom::engine {

struct EngineOptions {
  std::string device = "cpu";                      ///< "cpu" or "cuda"
  std::string dtype = "auto";                      ///< auto, float32, bf16
  std::int64_t batch_tokens = 16384;               ///< ceiling of prompt tokens in one forward pass
  std::size_t cache_bytes = std::size_t{1} << 29;  ///< KV caches of sequences that are computed together
  bool share_prefixes = true;                      ///< off for tests that compare
  const StopToken* stop = nullptr;                 ///< not owned; asked between chunks
  TokenIds encoder_ids;                            ///< what the encoder of an encoder-decoder reads
};

/// Weights on a device, shared by all position settings of one checkpoint.
class LoadedWeights;

/// Reads every tensor once. \throws ModelError for a missing, surplus or wrongly shaped tensor (names it).
std::shared_ptr<const LoadedWeights> load_weights(const checkpoint::Checkpoint& checkpoint,
                                                  const EngineOptions& options);

/// Bytes that the parameters take in memory.
std::int64_t weight_bytes(const LoadedWeights& weights);

/// A model ready to answer. Cheap: weights are shared. `config` may differ from the checkpoint's in its position
/// settings only (checkpoint/position_override.h). At creation the rotation in use is compared with
/// resolve_frequencies() in double at positions 0, 1, L0-1, L0 and 2*L0. \throws ModelError  if they differ (names
/// layer, position, channel and both values).
std::unique_ptr<lm::LanguageModel> make_language_model(std::shared_ptr<const LoadedWeights> weights,
                                                       const checkpoint::DecoderConfig& config,
                                                       const EngineOptions& options);

/// Makes the position scheme of every layer, without weights.
///
/// \throws ConfigError, ModelError  for settings that a scheme refuses: what make_language_model() would say later.
void check_position_settings(const checkpoint::DecoderConfig& config);

/// True if the last token of a sequence of `length_tokens` changes the angles of those before it, so that nothing
/// cached can be kept: the whole sequence goes through the network again for every token of an answer and every
/// candidate that is scored.
///
/// \throws ConfigError, ModelError  as check_position_settings().
bool recomputes_every_token(const checkpoint::DecoderConfig& config, std::int64_t length_tokens);

/// Threads used by LibTorch, OpenMP and oneDNN alike; 0 = all cores.
void set_threads(std::int64_t n_threads);

/// Versions of LibTorch, its BLAS and oneDNN; one line.
std::string engine_versions();

}  // namespace fathom::engine
