#include "harness/analysis/resample.h"

#include <algorithm>
#include <cmath>

#include "harness/core/error.h"

namespace fathom::analysis {
namespace {

/// Tries at once: (1 - p)^n must stay a normal number for every p <= 1/2.
constexpr std::int64_t kMaxTriesAtOnce = 500;

/// Inversion from 0 upwards: about n p steps. n <= kMaxTriesAtOnce, 0 < p <= 1/2.
std::int64_t invert_binomial(RngStream& rng, std::int64_t n, double p) {
  const double odds = p / (1 - p);
  double chance = std::pow(1 - p, static_cast<double>(n));
  double left = rng.uniform_double();
  std::int64_t k = 0;
  while (left >= chance && k < n) {
    left -= chance;
    ++k;
    chance *= odds * static_cast<double>(n - k + 1) / static_cast<double>(k);
  }
  return k;
}

}  // namespace

std::int64_t draw_binomial(RngStream& rng, std::int64_t n, double p) {
  FATHOM_CHECK(n >= 0 && p >= 0 && p <= 1, "draw_binomial arguments");
  if (p > 0.5) return n - draw_binomial(rng, n, 1 - p);
  if (p == 0) return 0;
  std::int64_t successes = 0;
  for (std::int64_t left = n; left > 0; left -= kMaxTriesAtOnce) {
    successes += invert_binomial(rng, std::min(left, kMaxTriesAtOnce), p);
  }
  return successes;
}

OutcomeGroups::OutcomeGroups(const std::vector<std::vector<double>>& rows)
    : width_(rows.empty() ? 0 : rows.front().size()), n_samples_(static_cast<std::int64_t>(rows.size())) {
  std::map<std::vector<double>, std::int64_t> n_with;
  for (const std::vector<double>& row : rows) {
    FATHOM_CHECK(row.size() == width_, "rows of one width");
    ++n_with[row];
  }
  for (const auto& [row, n] : n_with) {
    rows_.insert(rows_.end(), row.begin(), row.end());
    multiplicities_.push_back(n);
  }
}

void OutcomeGroups::add(std::size_t group, double times, std::vector<double>& sums) const {
  const double* row = rows_.data() + group * width_;
  for (std::size_t i = 0; i < width_; ++i) sums[i] += times * row[i];
}

void OutcomeGroups::draw_sums(RngStream& rng, std::vector<double>& sums) const {
  sums.assign(width_, 0.0);
  std::int64_t draws_left = n_samples_;
  std::int64_t samples_left = n_samples_;
  for (std::size_t g = 0; g < n_groups() && draws_left > 0; ++g) {
    // Given what the groups before got, this one's share is binomial.
    const double share = static_cast<double>(multiplicities_[g]) / static_cast<double>(samples_left);
    const std::int64_t n_drawn = g + 1 == n_groups() ? draws_left : draw_binomial(rng, draws_left, share);
    if (n_drawn > 0) add(g, static_cast<double>(n_drawn), sums);
    draws_left -= n_drawn;
    samples_left -= multiplicities_[g];
  }
}

void OutcomeGroups::actual_sums(std::vector<double>& sums) const {
  sums.assign(width_, 0.0);
  for (std::size_t g = 0; g < n_groups(); ++g) add(g, static_cast<double>(multiplicities_[g]), sums);
}

}  // namespace fathom::analysis
