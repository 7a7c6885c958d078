#pragma once
// Trains a tiny decoder from scratch by one of the recipes (harness/docs/training.md). No torch in this header.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/checkpoint/decoder_config.h"
#include "harness/core/log.h"
#include "harness/core/options.h"
#include "harness/text/word_tokenizer.h"

namespace fathom::train {

/// Everything that shapes a trained model; its canonical text is the cache key.
struct TrainSpec {
  std::string recipe = "A";  ///< "A" or "B"
  std::string position = "rope";
  OptionSource scheme_options;
  double rope_base = 10000;
  std::string rope_layout = "split_half";
  double rope_partial = 1;
  std::string rope_side = "prefix";  ///< where the rotated share of a head stands: "prefix" or "suffix"
  std::string nope_layers = "none";  ///< "none", "every 4", "1,3"
  std::int64_t context = 256;
  std::vector<std::string> tasks = {"niah"};  ///< niah, variable_tracking, kv
  std::uint64_t seed = 1;
  std::optional<std::int64_t> n_layers, d_model, n_heads, d_ff;  ///< default: the recipe's
  std::int64_t max_steps = 6000;
  text::VocabularySpec vocabulary;

  /// Canonical text, recipe version included.
  std::string canonical() const;
};

/// One line of training.jsonl, and what the progress line shows.
struct TrainProgress {
  std::int64_t step = 0;
  std::int64_t length_tokens = 0;  ///< current rung of the ladder
  double loss = 0;
  std::map<std::string, double>
      mastery;  ///< moving average of answer accuracy, per task; "copy" while the plateau breaker runs
  double tokens_per_second = 0;
  double seconds = 0;                 ///< training time so far, earlier sittings included
  std::optional<double> eta_seconds;  ///< known during the final decay only; else an estimate from the budget
  bool decaying = false;
};

struct TrainOutcome {
  std::string folder;  ///< config.json, model.safetensors, tokenizer.json, training.jsonl
  bool mastered = false;
  std::int64_t steps = 0;
  double seconds = 0;
  double final_accuracy = 0;  ///< moving average at the trained length, worst task
  bool from_cache = false;
};

struct TrainCallbacks {
  std::function<void(const TrainProgress&)> progress;  ///< called about four times a second
  const StopToken* stop = nullptr;
  Logger* logger = nullptr;
};

/// The decoder that a spec trains, with everything checked that can be checked before the first step.
///
/// \throws ConfigError, ModelError  for what the training itself would refuse.
checkpoint::DecoderConfig planned_decoder(const TrainSpec& spec);

/// Trains into `folder`, or returns at once if it already holds the finished model of this spec. An interrupted
/// training leaves a resumable state there (weights, optimiser, moving averages, random streams) and goes on from it:
/// the final weights equal those of an undisturbed training bit for bit, with the same number of threads. \throws
/// Interrupted after saving its state; DataError if the folder cannot be written.
TrainOutcome train(const TrainSpec& spec, const std::string& folder, const TrainCallbacks& callbacks);

/// `<cache>/models/<hash of canonical()>`
std::string cache_folder(const TrainSpec& spec, const std::string& cache_root);

}  // namespace fathom::train
