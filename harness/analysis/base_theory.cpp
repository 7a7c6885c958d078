#include "harness/analysis/base_theory.h"

#include <algorithm>
#include <cmath>

#include "harness/rope/base_bound.h"
#include "harness/rope/rope_scaling.h"
#include "harness/rope/theory.h"

namespace fathom::analysis {
namespace {

/// Cosines that a curve may cost; a long context gets fewer points between its bases.
constexpr double kMaxCosines = 2e7;
constexpr double kMostPoints = 40;

std::vector<double> bases_and_between(const BaseBoundQuestion& question) {
  std::vector<double> bases = question.bases;
  std::sort(bases.begin(), bases.end());
  const double cosines_each = 2 * static_cast<double>(question.longest) * static_cast<double>(question.n_channels);
  const auto n_between = static_cast<int>(std::min(kMostPoints, kMaxCosines / std::max(1.0, cosines_each)));
  const double low = std::log(bases.front());
  const double high = std::log(bases.back());
  for (int i = 1; i < n_between && low < high; ++i) bases.push_back(std::exp(low + (high - low) * i / n_between));
  std::sort(bases.begin(), bases.end());
  bases.erase(std::unique(bases.begin(), bases.end()), bases.end());
  return bases;
}

}  // namespace

std::vector<BaseBound> base_bound_curve(const BaseBoundQuestion& question) {
  std::vector<BaseBound> out;
  if (question.n_channels < 1 || question.longest < 1 || question.bases.empty()) return out;
  const std::int64_t end = 2 * question.longest;
  for (const double base : bases_and_between(question)) {
    const auto first = rope::first_negative_advantage(rope::default_inv_freq(2 * question.n_channels, base), 0, end);
    out.push_back({base, static_cast<double>(first.value_or(end))});
  }
  return out;
}

std::optional<double> full_turn_base(std::int64_t trained_tokens) {
  if (trained_tokens < 7) return std::nullopt;
  return rope::small_bases(trained_tokens).whole;
}

}  // namespace fathom::analysis
