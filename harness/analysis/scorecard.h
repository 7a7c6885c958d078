#pragma once
// What theories of position say about how far a model reads, to be held against what was measured.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace fathom::analysis {

/// One rotation or bias as it was in force at the longest tested length.
struct TheoryInput {
  std::vector<double> inv_freq;  ///< of the first layer that rotates, radians per token; empty: none does
  std::int64_t n_still = 0;      ///< channels of the head outside the rotation
  std::vector<double> slopes;    ///< ALiBi's; empty: none
  double pretrained_base = 0;    ///< theta of training; 0: unknown
  std::int64_t trained = 0;      ///< tokens
  std::int64_t tested = 0;       ///< longest tested length, tokens
};

/// Predictions in tokens; nothing where a theory says nothing about this model.
struct TheoryPrediction {
  std::int64_t n_channels = 0;       ///< that turn
  std::int64_t wrapped_trained = 0;  ///< channels with a whole period within the trained length
  /// Longest length at which no channel that completed no period in training turns farther than it did then.
  std::optional<double> seen_angles;
  std::optional<double> extrapolation;  ///< T_extra of Liu et al. 2023, theorem 4.2, of the list's own base
  /// beta_0 of Liu et al. 2023, section 4.2, of the pretrained base for the tested length: a base, no tokens.
  std::optional<double> critical_base;
  std::optional<double> base_bound;     ///< first m with B(m) < 0 of Xu et al. 2024
  std::optional<double> alibi_horizon;  ///< distance at which the mildest slope takes a thousandth
};
TheoryPrediction predict_reach(const TheoryInput& input);

/// Spearman's rank correlation, ties with their mean rank: Pearson's correlation of the ranks. Nothing for fewer than
/// three pairs or where one side is constant. \throws InvariantError for vectors of different sizes.
std::optional<double> rank_correlation(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace fathom::analysis
