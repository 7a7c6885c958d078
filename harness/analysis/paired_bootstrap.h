#pragma once
// Differences of two settings on the same samples: means with intervals, and the effective context. Samples are
// resampled, each with all its depths and lengths and under both settings.

#include <cstdint>
#include <optional>
#include <vector>

#include "harness/analysis/effective_context.h"
#include "harness/core/random.h"
#include "harness/core/stats.h"

namespace fathom::analysis {

/// One sample at one length under both settings: sums over the depths that both have.
struct PairedSample {
  double baseline_sum = 0;
  double candidate_sum = 0;
  std::int64_t n_values = 0;  ///< 0: nothing in common at this length
};

/// One task at one length.
struct PairedLength {
  std::int64_t length_tokens = 0;
  std::vector<PairedSample> samples;  ///< [n_samples]: the same sample at the same place at every length of the task
  bool scored = true;                 ///< false: cell missing or too many of its samples not ok
};

/// One task, shortest length first.
using PairedTask = std::vector<PairedLength>;

struct PairedDifference {
  std::int64_t n_samples = 0;  ///< samples with values in common
  std::int64_t n_values = 0;
  double baseline = 0, candidate = 0;  ///< means, in the unit of the scores
  double difference = 0;               ///< candidate minus baseline
  std::optional<Interval> interval;    ///< of the difference, 95 %; nothing for one sample or without resamples
  double p = 1;                        ///< sign-flip permutation over samples, two-sided
};

/// Mean over tasks of each task's mean over its values; one task is the plain mean. Samples of different tasks are
/// different samples, so each task is resampled by itself. The interval is the expanded percentile bootstrap
/// (expanded_tail); where scores count right answers, half an unseen flip each way is added to every task, so that
/// equal answers have an interval too. \param tasks  one length of each; not empty, each with a value in common.
PairedDifference paired_difference(const std::vector<const PairedLength*>& tasks, const RngKey& key,
                                   int resamples = 2000);

struct EffectiveChange {
  EffectiveValue baseline, candidate;
  std::optional<double> baseline_base, candidate_base;  ///< base scores in percent (relative rule)
  int steps = 0;  ///< places on the grid of tested lengths that the candidate stands higher (negative: lower)
  double p = 1;   ///< 2 (1 - P(lower)), with one added to count and draws; 1 where the candidate stands no lower
  std::int64_t n_resamples = 0;  ///< drawn; fewer than asked where it was plain that p is above 0.05
};

/// The effective context of the mean over tasks under both rules, on the samples that both settings have. Lengths that
/// not every task has are left out.
struct EffectiveChanges {
  EffectiveChange absolute, relative;
};
EffectiveChanges paired_effective_context(const std::vector<PairedTask>& tasks, const RuleSettings& rules,
                                          const RngKey& key, std::int64_t resamples = 20000);

}  // namespace fathom::analysis
