#pragma once
// Effective context against the base of the rotation, with what theory says drawn in.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/analysis/effective_context.h"

namespace fathom::reports {

struct ThetaChartPoint {
  double base = 0;
  analysis::EffectiveValue effective;
  std::optional<analysis::EffectiveValue> low, high;  ///< 95 % interval
};

struct ThetaChartSeries {
  std::size_t style = 0;                ///< 0..kMaxCurveSeries-1
  std::vector<ThetaChartPoint> points;  ///< by base
};

/// A base that theory names.
struct ThetaMark {
  double base = 0;
  std::string label;
};

struct ThetaChart {
  std::string description;               ///< text alternative
  std::vector<ThetaChartSeries> series;  ///< at most kMaxCurveSeries
  std::vector<std::int64_t> lengths;     ///< tested, shortest first
  std::vector<double> bases;             ///< ticks, smallest first
  /// The theoretical bound: base, and the tokens it is good for.
  std::vector<std::pair<double, double>> bound;
  std::vector<ThetaMark> base_marks;        ///< verticals, smallest base first
  std::vector<std::int64_t> trained_marks;  ///< horizontals
  std::string base_label, bound_label, trained_label;
};

/// Tokens on a log2 axis against the base on a logarithmic one. A value below the first length stands on the floor, one
/// at the last length has an arrow upwards. Empty without lengths or bases.
std::string theta_chart_svg(const ThetaChart& chart);
/// "10000", "1.75e6": a base is no length, so it has no K.
std::string format_base(double base);

}  // namespace fathom::reports
