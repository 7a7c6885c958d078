#pragma once
// Depth to place: where needles stand between the units of a haystack (tasks specification 0.3, 1.0).

#include <cstdint>
#include <optional>
#include <vector>

#include "harness/core/random.h"
#include "harness/task/haystack.h"

namespace fathom::task {

/// Depths of balanced placement: 0, 10, …, 100 percent.
inline constexpr std::int64_t kDepthStrata = 11;

/// The first `n_units` units of a haystack, and where needles may stand: in front of unit 0…n_units-1, or behind the
/// last (= n_units).
class PlacementSpace {
 public:
  PlacementSpace(const MeasuredHaystack& haystack, std::int64_t n_units);

  std::int64_t n_boundaries() const { return static_cast<std::int64_t>(units_.size()); }
  /// Unit in front of which boundary `b` lies.
  std::int64_t unit(std::int64_t b) const { return units_[static_cast<std::size_t>(b)]; }
  /// Haystack tokens in front of unit `unit` / haystack tokens, in 1/100 %, rounded; 0 for an empty haystack.
  std::int32_t depth_bp(std::int64_t unit) const;
  /// The boundary whose token offset is nearest to depth_bp / 10000 of the haystack, ties to the earlier; `taken` ones
  /// are left out, nothing if all are taken.
  std::optional<std::int64_t> nearest(std::int32_t depth_bp, const std::vector<bool>& taken) const;

 private:
  const MeasuredHaystack& haystack_;
  std::int64_t total_tokens_;
  std::vector<std::int64_t> units_;
};

struct Placement {
  std::int64_t unit = 0;  ///< the needle stands in front of this unit
  std::optional<std::int32_t> requested_depth_bp;
};

/// A run of needles that has to keep its order (a chain), or a single needle.
struct NeedleGroup {
  std::int64_t n_needles = 1;
  bool gold = true;
};

struct BalancedRequest {
  std::vector<NeedleGroup> groups;       ///< placements come back in this order, group by group
  std::optional<std::int32_t> depth_bp;  ///< depth of the only gold needle, if the sweep sets it
  std::int64_t index = 0;                ///< sample index: decides the strata
};

/// Gold needles stand on strata (index + round(j * 11 / m)) mod 11, which takes which being drawn from `order` (single
/// needles) or ascending (chains); distractors on free strata in an order drawn from `place`, then on free boundaries.
/// No two needles share a boundary.
///
/// \param order  must be the same for the 11 samples of a block, so that every gold rank visits every stratum once a
/// block. \throws InvariantError  for fewer boundaries than needles.
std::vector<Placement> place_balanced(const PlacementSpace& space, const BalancedRequest& request, RngStream order,
                                      RngStream place);

/// RULER, prose: `n` of 40 depths round(100 j / 39), sentence trunc(n_sentences * (depth / 100)), in ascending order. n
/// <= 40.
std::vector<Placement> place_ruler_prose(const PlacementSpace& space, std::int64_t n, RngStream place);
/// RULER, noise and needle haystacks: `n` distinct units of 0…n_units-1, ascending. n <= n_units.
std::vector<Placement> place_ruler_units(std::int64_t n_units, std::int64_t n, RngStream place);
/// RULER's fixed order of `n` needles in the text: entry p is the needle that stands p-th. For four: 3rd, 2nd, 4th,
/// 1st; else from a hash.
std::vector<std::int64_t> ruler_needle_order(std::int64_t n);

}  // namespace fathom::task
