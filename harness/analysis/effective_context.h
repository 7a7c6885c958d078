#pragma once
// Effective context: the longest length that still passes, by the rules of the tasks specification, section 4.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/random.h"

namespace fathom::analysis {

struct LengthPoint {
  std::int64_t length_tokens = 0;
  std::optional<double> score;  ///< 0..100; nothing = unscored
};

enum class Censoring { kExact, kNone, kLeft, kRight };
/// `kExact` prints VALUE, `kRight` ">=LAST", `kLeft` "<FIRST", `kNone` "–" (nothing could be said).

struct EffectiveValue {
  Censoring kind = Censoring::kNone;
  std::optional<std::int64_t> tokens;         ///< value; for kLeft nothing; for kRight the last length
  std::optional<std::int64_t> next_tested;    ///< first tested length after the value
  std::optional<std::int64_t> plain_maximum;  ///< longest passing length, whatever failed before it
  std::optional<std::int64_t> first_tested;   ///< what "<FIRST" prints
  std::vector<std::string> notes;             ///< "gap at 512", with the reason where it is known; "not monotone"
};

enum class PassRule { kAtLeast, kGreater };

/// The function of section 4.1. Points are sorted first. \throws ConfigError if a length appears twice.
EffectiveValue effective_context(std::vector<LengthPoint> points, double threshold, PassRule rule);

/// "4096", ">=2048", "<128", "–".
std::string format_effective(const EffectiveValue& value);

/// Section 4.3, of the scores of n lengths, shortest first: increasing = sum of i s_i / (n(n+1)/2), decreasing = sum of
/// (n+1-i) s_i / (n(n+1)/2).
struct WeightedMeans {
  double average = 0;
  double increasing = 0;
  double decreasing = 0;
};
WeightedMeans weighted_means(const std::vector<double>& scores);

/// Scores of one (variant, task): per length, per sample index, one or more values (the depths of that sample).
struct LengthScores {
  std::int64_t length_tokens = 0;
  std::vector<std::vector<double>> by_sample;  ///< [n_samples][values of that sample], 0..1
  bool scored = true;                          ///< false: cell missing or more than 1 % of its samples not ok
  std::string why_unscored = {};               ///< said in the note on the gap; may be empty
};

struct RuleSettings {
  double absolute_threshold = 85.6;        ///< percent, strict ">"
  double relative_share = 0.85;            ///< of the base score, ">="
  std::vector<std::int64_t> base_lengths;  ///< base = maximum score over these
  double blind_guess = 0;                  ///< 0..1; base <= chance + 10 points gives kNone
  int resamples = 2000;
};

/// Both rules on one set of scores.
struct BothRules {
  EffectiveValue absolute;
  EffectiveValue relative;
  std::optional<double> base_score;  ///< percent: highest score over the base lengths that are scored
};
BothRules effective_by_both_rules(const std::vector<LengthPoint>& points, const RuleSettings& settings);

/// Score of one length with the expanded percentile interval of the same bootstrap (expanded_tail), in percent.
struct LengthScore {
  std::int64_t length_tokens = 0;
  double score = 0;
  std::optional<double> low, high;  ///< nothing without resamples
};

struct EffectiveContext {
  EffectiveValue absolute;
  EffectiveValue relative;
  std::optional<double> base_score;  ///< percent
  /// 2.5 and 97.5 % points of the bootstrap on the ordered grid (left < lengths < right), for both rules.
  std::optional<EffectiveValue> absolute_low, absolute_high, relative_low, relative_high;
  /// P(effective >= length) for each tested length, absolute rule.
  std::vector<double> probability_at_least;
  /// Every length with values, shortest first, unscored ones included; lengths that were left out are not here.
  std::vector<LengthScore> curve;
  std::optional<double> average, weighted_increasing, weighted_decreasing;  ///< percent, section 4.3
};

/// Point estimates and bootstrap over samples: the same indices are drawn at every length, so that a sample keeps its
/// depths and its lengths together. Several tasks: scores are means over tasks, samples resampled within each task.
/// Deterministic for a key.
EffectiveContext estimate_effective_context(const std::vector<std::vector<LengthScores>>& tasks,
                                            const RuleSettings& settings, const RngKey& key);

}  // namespace fathom::analysis
