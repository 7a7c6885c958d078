#pragma once
// Bootstrap draws as counts: samples with equal outcomes are one group, and a resample is how often each group is
// drawn. The cost then follows the number of distinct outcomes, not of samples.

#include <cstdint>
#include <map>
#include <vector>

#include "harness/core/random.h"

namespace fathom::analysis {

/// Successes of n independent tries, each with chance p, by inversion (exact to rounding). n >= 0, 0 <= p <= 1.
std::int64_t draw_binomial(RngStream& rng, std::int64_t n, double p);

/// Distinct rows with the number of samples that have them. Every row has the same width.
class OutcomeGroups {
 public:
  /// \param rows  one a sample: what a resample needs of it, for example sums and numbers of scores by length.
  explicit OutcomeGroups(const std::vector<std::vector<double>>& rows);

  std::int64_t n_samples() const { return n_samples_; }
  std::size_t n_groups() const { return multiplicities_.size(); }

  /// Adds up the rows of as many samples as there are, drawn with replacement (a multinomial draw over the groups).
  /// \param sums  [width]; overwritten.
  void draw_sums(RngStream& rng, std::vector<double>& sums) const;
  /// The sums over the samples themselves.
  void actual_sums(std::vector<double>& sums) const;

 private:
  void add(std::size_t group, double times, std::vector<double>& sums) const;

  std::size_t width_ = 0;
  std::int64_t n_samples_ = 0;
  std::vector<double> rows_;                  // [n_groups * width]
  std::vector<std::int64_t> multiplicities_;  // [n_groups]
};

}  // namespace fathom::analysis
