#pragma once
// The charts of a report as SVG. Colours of lines and text are CSS classes, so that one drawing serves light, dark and
// print.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/analysis/run_summary.h"

namespace fathom::reports {

/// Lines that one chart can tell apart by colour, dash and marker together.
inline constexpr std::size_t kMaxCurveSeries = 6;

struct CurveSeries {
  std::string name;
  std::size_t style = 0;  ///< 0..kMaxCurveSeries-1
  const std::vector<analysis::ScorePoint>* points = nullptr;
};

struct CurveChart {
  std::string description;                  ///< text alternative
  std::vector<CurveSeries> series;          ///< drawn with bands
  std::vector<std::int64_t> lengths;        ///< ticks, shortest first
  std::vector<std::int64_t> trained_marks;  ///< lengths of training, each marked once
  std::vector<std::int64_t> claimed_marks;
  double threshold_percent = 85.6;
  std::string trained_label, claimed_label;
};

/// Score in percent against length on a log2 axis. Empty without lengths.
std::string curve_chart_svg(const CurveChart& chart);
/// A line with the marker of one style, for legends.
std::string legend_swatch_svg(std::size_t style);

struct HeatMap {
  std::string description;
  const std::vector<analysis::ScorePoint>* cells = nullptr;  ///< with depths
  std::string depth_label, length_label;
};

/// Score in each (depth, length) cell, on a dark-blue-to-yellow scale. Empty without cells.
std::string heat_map_svg(const HeatMap& map);
/// The colour scale from 0 to 100 %.
std::string heat_scale_svg();

struct Rgb {
  int red, green, blue;
};
/// Colour of a score in 0..1; its luminance grows with the score.
Rgb heat_colour(double fraction);
/// Whether white text stands out more than black; the better of both has at least 4.5 to 1 on every colour of the
/// scale.
bool dark_background(const Rgb& background);
/// Contrast ratio of the Web Content Accessibility Guidelines 2.1.
double contrast_ratio(const Rgb& one, const Rgb& other);

struct TrackChart {
  std::int64_t shortest = 1, longest = 1;  ///< of the axis, tokens
  analysis::EffectiveValue effective;
  std::optional<analysis::EffectiveValue> low, high;
  std::optional<std::int64_t> trained;
  std::int64_t claimed = 0;
};

/// Effective, trained and claimed length of one variant on a small log2 axis. The table around it says the same in
/// numbers.
std::string track_svg(const TrackChart& track);

}  // namespace fathom::reports
