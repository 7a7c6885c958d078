#pragma once
// What charts have in common: logarithmic axes, and the colour, dash and marker of a series.

#include <cstdint>

#include "reports/svg.h"

namespace fathom::reports {

/// Coordinate of a positive value between two ends of a logarithmic axis; where both ends are one, the middle.
class LogAxis {
 public:
  /// \param from, to  coordinates of `low` and `high`
  LogAxis(double low, double high, double from, double to);
  double at(double value) const;
  double at(std::int64_t value) const { return at(static_cast<double>(value)); }

 private:
  double low_, high_, from_, to_;
};

/// The axis of lengths of a chart.
LogAxis length_axis(std::int64_t shortest, std::int64_t longest, double from, double to);

/// Markers differ in shape, so that series are told apart without colour. \param style  below kMaxCurveSeries
void draw_marker(SvgWriter& svg, std::size_t style, double x, double y);
/// Class and dash of a series' line.
SvgAttributes series_line_attributes(std::size_t style);

}  // namespace fathom::reports
