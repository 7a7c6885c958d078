#pragma once
// Where a series of nightly values shifts.

#include <cstddef>
#include <vector>

#include "harness/core/random.h"

namespace fathom::analysis {

struct ChangeSettings {
  std::size_t min_segment = 3;  ///< values on either side of a change
  int permutations = 1999;
  double alpha = 0.01;
};

/// Binary segmentation: the split k with the largest
///
///   |mean(first k) - mean(last n - k)| sqrt(k (n - k) / n)
///
/// is a change if fewer than a share alpha of the series' permutations have a split as large (one added to count and
/// draws); both sides are searched again.
/// \return indices of the first value after each change, ascending.
std::vector<std::size_t> change_points(const std::vector<double>& series, const RngKey& key,
                                       const ChangeSettings& settings = {});

}  // namespace fathom::analysis
