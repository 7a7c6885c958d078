#pragma once
// Mean and interval of the scores of one cell, or of one length with its depths pooled.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "harness/analysis/effective_context.h"

namespace fathom::analysis {

/// Below this number of fractional scores the number is shown instead of an interval (specification 5.1).
inline constexpr std::int64_t kMinBootstrapValues = 20;

enum class Estimator {
  kNone,             ///< fractional scores of fewer than 20 values: the number is shown instead
  kWilson,           ///< 0/1 scores, one a sample
  kWilsonClustered,  ///< all values equal, where resampling would claim certainty: Wilson with the number of
                     ///< values over the largest design effect seen at the other lengths of the curve
  kBootstrap         ///< samples resampled, each with its depths
};
std::string_view to_string(Estimator estimator);  // "none", "wilson", "wilson_clustered", "bootstrap"

/// Mean score of a cell, or of a length with its depths pooled.
struct ScorePoint {
  std::int64_t length_tokens = 0;
  std::optional<std::int32_t> depth_bp;   ///< nothing: depths pooled, or depth not swept
  std::int64_t n_samples = 0;             ///< with a score
  std::int64_t n_values = 0;              ///< scores: samples times depths
  double n_independent = 0;               ///< values over the design effect of the curve
  std::int64_t n_failed = 0;              ///< not ok, or without a score
  std::optional<double> mean, low, high;  ///< 0..1; 95 % interval
  Estimator estimator = Estimator::kNone;
};

/// What the interval of one point must know of the others.
struct CurveFacts {
  bool fractional = false;   ///< the task has scores between 0 and 1, so that a 1 is no success of a coin
  double design_effect = 1;  ///< largest of the curve
};

/// How much less the values of one length say than as many independent ones (Kish 1965, section 5.4): variance of the
/// mean with samples as clusters over the binomial one, the largest over the lengths. At least 1.
double design_effect_of_curve(const std::vector<LengthScores>& lengths);

/// Mean and interval of scores grouped by sample.
/// \param bootstrap  of the same length: its interval, in percent; null where nothing was resampled.
ScorePoint score_point(const std::vector<std::vector<double>>& by_sample, const LengthScore* bootstrap,
                       const CurveFacts& facts);

/// The point of a mean over tasks, `parts` being the tasks' points at that length.
ScorePoint mean_score_point(const LengthScore& score, const std::vector<ScorePoint>& parts);

/// Null where the curve has no such length.
const LengthScore* find_length(const EffectiveContext& effective, std::int64_t length_tokens);

}  // namespace fathom::analysis
