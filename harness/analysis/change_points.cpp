#include "harness/analysis/change_points.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fathom::analysis {
namespace {

struct Split {
  std::size_t first_after = 0;
  double size = 0;
};

Split largest_split(const std::vector<double>& values, std::size_t min_segment) {
  const double total = std::accumulate(values.begin(), values.end(), 0.0);
  const auto n = static_cast<double>(values.size());
  Split best;
  double left_sum = 0;
  for (std::size_t k = 1; k < values.size(); ++k) {
    left_sum += values[k - 1];
    if (k < min_segment || values.size() - k < min_segment) continue;
    const auto left = static_cast<double>(k);
    const double right = n - left;
    const double size = std::abs(left_sum / left - (total - left_sum) / right) * std::sqrt(left * right / n);
    if (size > best.size) best = {k, size};
  }
  return best;
}

bool is_significant(const std::vector<double>& values, const Split& split, const RngKey& key,
                    const ChangeSettings& settings) {
  RngStream rng(key);
  std::vector<double> shuffled = values;
  int n_as_large = 0;
  for (int b = 0; b < settings.permutations; ++b) {
    rng.shuffle(shuffled);
    // Sums of equal values in another order differ by rounding.
    if (largest_split(shuffled, settings.min_segment).size >= split.size * (1 - 1e-9)) ++n_as_large;
  }
  return (n_as_large + 1.0) / (settings.permutations + 1.0) < settings.alpha;
}

void search(const std::vector<double>& series, std::size_t begin, std::size_t end, const RngKey& key,
            const ChangeSettings& settings, std::vector<std::size_t>& out) {
  if (end - begin < 2 * settings.min_segment) return;
  const std::vector<double> part(series.begin() + static_cast<std::ptrdiff_t>(begin),
                                 series.begin() + static_cast<std::ptrdiff_t>(end));
  const Split split = largest_split(part, settings.min_segment);
  if (split.size <= 0 || !is_significant(part, split, key, settings)) return;
  search(series, begin, begin + split.first_after, key.child("left"), settings, out);
  out.push_back(begin + split.first_after);
  search(series, begin + split.first_after, end, key.child("right"), settings, out);
}

}  // namespace

std::vector<std::size_t> change_points(const std::vector<double>& series, const RngKey& key,
                                       const ChangeSettings& settings) {
  std::vector<std::size_t> out;
  search(series, 0, series.size(), key, settings, out);
  return out;
}

}  // namespace fathom::analysis
