#pragma once
// What theory says about the base of a rotation, to be drawn beside a sweep over bases.

#include <cstdint>
#include <optional>
#include <vector>

namespace fathom::analysis {

/// A base and the distance that the theoretical bound gives it.
struct BaseBound {
  double base = 0;
  double tokens = 0;
};

struct BaseBoundQuestion {
  std::int64_t n_channels = 0;  ///< that turn; plain RoPE is asked about
  std::vector<double> bases;    ///< each gets a point; others are put between them
  std::int64_t longest = 0;     ///< tokens; distances beyond twice this are not looked at
};

/// First distance m with B(m) < 0 (Xu et al. 2024) by base, smallest base first; a base without one within reach gets
/// twice the longest length. Empty without channels or bases.
std::vector<BaseBound> base_bound_curve(const BaseBoundQuestion& question);

/// T / 2 pi, beta_3 of Liu et al. 2023, section 3.2: below this base every channel completes a period in a training on
/// T tokens. Nothing below 7 tokens, where not even the fastest does.
std::optional<double> full_turn_base(std::int64_t trained_tokens);

}  // namespace fathom::analysis
