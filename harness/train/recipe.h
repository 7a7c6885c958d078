#pragma once
// The numbers of the two training recipes (harness/docs/training.md). Torch-free.

#include <cstdint>
#include <string_view>

#include "harness/train/trainer.h"

namespace fathom::train {

struct Recipe {
  std::string_view name;
  std::int32_t version = 1;  ///< bump when the same spec would give other weights
  std::int64_t n_layers = 2;
  std::int64_t d_model = 128;
  std::int64_t n_heads = 4;
  std::int64_t d_ff = 256;
  bool bos = false;  ///< every row starts with <bos>, inside its length

  double peak_learning_rate = 2e-3;
  double beta1 = 0.9, beta2 = 0.98, epsilon = 1e-8;
  double weight_decay = 0.01;  ///< attention and MLP matrices only
  double clip_norm = 1.0;
  std::int64_t warmup_steps = 100;
  std::int64_t decay_steps = 150;  ///< linear to 0 after mastery of the trained length
  double lowest_decay = 0.02;      ///< of the peak

  std::int64_t batch_tokens = 2048;
  double embedding_std = 0.5;
  std::int64_t first_length = 64;
  double length_growth = 1.5;
  double shorter_share = 0.5;       ///< of the batches after the first length
  double mastery = 0.9;             ///< moving average of answer accuracy that grows the length
  double final_mastery = 0.97;      ///< the same at the trained length
  std::int64_t least_batches = 15;  ///< of the longest length before it counts as mastered
  std::int64_t n_queries = 16;      ///< most queries a row
  double varied_queries_share = 0;  ///< batches with 1 .. n_queries queries, after the first length
  double lagging_weight = 7;        ///< of a task below mastery in the draw of tasks, against 1 for a mastered one

  double copy_share = 0.5;           ///< rows of repeated random words while the length is the first one
  double learnt_copy_share = 0.125;  ///< once copying works
  double copy_mastery = 0.9;

  std::int64_t auxiliary_heads = 0;      ///< previous-word heads, thrown away after training
  std::int64_t auxiliary_samples = 512;  ///< positions a batch
  double auxiliary_weight = 1.0;         ///< shared by the heads

  std::int64_t position_limit = 0;  ///< random start position with start + length <= this; 0 = start at 0
  std::int64_t position_edge = 0;   ///< the start is drawn this much wider at both ends and clipped
};

/// The recipe a spec asks for, with its overrides and what the position scheme changes. \throws ConfigError naming what
/// is out of range.
Recipe make_recipe(const TrainSpec& spec);

}  // namespace fathom::train
