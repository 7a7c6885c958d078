#include "reports/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "reports/chart_marks.h"
#include "reports/format.h"
#include "reports/svg.h"

namespace fathom::reports {
namespace {

// One size for all curve charts: three stand side by side on a wide page, and one fills a telephone, without being
// scaled.
constexpr double kCurveWidth = 364;
constexpr double kCurveHeight = 236;
constexpr double kCurveLeft = 34;
constexpr double kCurveRight = 12;
constexpr double kCurveTop = 22;
constexpr double kCurveBottom = 26;
/// Room that a tick label takes on the length axis.
constexpr double kTickRoom = 30;

constexpr double kHeatCellWidth = 38;
constexpr double kHeatCellHeight = 20;
constexpr double kHeatLeft = 38;
constexpr double kHeatTop = 4;
constexpr double kHeatBottom = 36;

constexpr double kTrackWidth = 150;
constexpr double kTrackHeight = 18;

class CurveDrawing {
 public:
  explicit CurveDrawing(const CurveChart& chart)
      : chart_(chart),
        svg_(kCurveWidth, kCurveHeight, chart.description),
        axis_(length_axis(chart.lengths.front(), chart.lengths.back(), kCurveLeft + 8, kCurveWidth - kCurveRight - 8)) {
  }

  std::string draw() {
    draw_grid();
    draw_length_ticks();
    draw_marks();
    for (const CurveSeries& series : chart_.series) draw_band(series);
    for (const CurveSeries& series : chart_.series) draw_line(series);
    return svg_.finish();
  }

 private:
  static double y(double fraction) { return kCurveTop + (1 - fraction) * (kCurveHeight - kCurveTop - kCurveBottom); }

  void draw_grid() {
    for (const int percent : {0, 25, 50, 75, 100}) {
      const double at = y(percent / 100.0);
      svg_.line(kCurveLeft, at, kCurveWidth - kCurveRight, at, {{"class", percent == 0 ? "axis" : "grid"}});
      svg_.text(kCurveLeft - 6, at + 4, std::to_string(percent), {{"class", "tick"}, {"text-anchor", "end"}});
    }
    const double at = y(chart_.threshold_percent / 100);
    svg_.line(kCurveLeft, at, kCurveWidth - kCurveRight, at, {{"class", "threshold"}, {"stroke-dasharray", "3 3"}});
  }

  void draw_length_ticks() {
    double last = -kTickRoom;
    for (const std::int64_t length : chart_.lengths) {
      const double at = axis_.at(length);
      svg_.line(at, y(0), at, y(0) + 4, {{"class", "axis"}});
      if (at - last < kTickRoom) continue;
      svg_.text(at, y(0) + 17, format_tokens_short(length), {{"class", "tick"}, {"text-anchor", "middle"}});
      last = at;
    }
  }

  /// Trained and claimed lengths as verticals; one outside the tested range is named at the edge.
  void draw_marks() {
    std::set<std::int64_t> both;
    for (const std::int64_t length : chart_.trained_marks) {
      if (std::find(chart_.claimed_marks.begin(), chart_.claimed_marks.end(), length) != chart_.claimed_marks.end())
        both.insert(length);
    }
    double free_from = kCurveLeft;
    for (const std::int64_t length : chart_.trained_marks) {
      const std::string label =
          both.count(length) > 0 ? chart_.trained_label + " = " + chart_.claimed_label : chart_.trained_label;
      draw_mark(length, label, "", free_from);
    }
    for (const std::int64_t length : chart_.claimed_marks) {
      if (both.count(length) == 0) draw_mark(length, chart_.claimed_label, "4 3", free_from);
    }
  }

  void draw_mark(std::int64_t length, const std::string& label, const std::string& dash, double& free_from) {
    const bool below = length < chart_.lengths.front();
    const bool beyond = length > chart_.lengths.back();
    const double at = below ? kCurveLeft : beyond ? kCurveWidth - kCurveRight : axis_.at(length);
    if (!below && !beyond) {
      SvgAttributes attributes = {{"class", "mark"}};
      if (!dash.empty()) attributes.emplace_back("stroke-dasharray", dash);
      svg_.line(at, kCurveTop - 6, at, y(0), attributes);
    }
    const std::string text = beyond  ? fmt::format("{} {} →", label, format_tokens_short(length))
                             : below ? fmt::format("← {} {}", label, format_tokens_short(length))
                                     : fmt::format("{} {}", label, format_tokens_short(length));
    // About six units a character; labels that would run into each other are left to the table.
    const double width = 6.2 * display_width(text);
    const double centre = std::clamp(at, kCurveLeft + width / 2, kCurveWidth - 2 - width / 2);
    if (centre - width / 2 < free_from) return;
    svg_.text(centre, 11, text, {{"class", "marklabel"}, {"text-anchor", "middle"}});
    free_from = centre + width / 2 + 6;
  }

  /// One band for each run of neighbouring points with an interval.
  void draw_band(const CurveSeries& series) {
    std::vector<const analysis::ScorePoint*> points;
    for (const analysis::ScorePoint& point : *series.points) {
      if (point.low && point.high) {
        points.push_back(&point);
        continue;
      }
      draw_band_piece(points, series.style);
      points.clear();
    }
    draw_band_piece(points, series.style);
  }

  void draw_band_piece(const std::vector<const analysis::ScorePoint*>& points, std::size_t style) {
    if (points.empty()) return;
    if (points.size() == 1) {
      const double at = axis_.at(points[0]->length_tokens);
      svg_.line(at, y(*points[0]->low), at, y(*points[0]->high), {{"class", fmt::format("l{}", style)}});
      return;
    }
    std::string data;
    for (const analysis::ScorePoint* point : points) {
      data +=
          (data.empty() ? "M" : "L") + svg_number(axis_.at(point->length_tokens)) + " " + svg_number(y(*point->high));
    }
    for (auto it = points.rbegin(); it != points.rend(); ++it) {
      data += "L" + svg_number(axis_.at((*it)->length_tokens)) + " " + svg_number(y(*(*it)->low));
    }
    svg_.path(data + "Z", {{"class", fmt::format("b{}", style)}});
  }

  void draw_line(const CurveSeries& series) {
    std::string data;
    for (const analysis::ScorePoint& point : *series.points) {
      if (!point.mean) continue;
      data += (data.empty() ? "M" : "L") + svg_number(axis_.at(point.length_tokens)) + " " + svg_number(y(*point.mean));
    }
    if (data.empty()) return;
    svg_.path(data, series_line_attributes(series.style));
    for (const analysis::ScorePoint& point : *series.points) {
      if (point.mean) draw_marker(svg_, series.style, axis_.at(point.length_tokens), y(*point.mean));
    }
  }

  const CurveChart& chart_;
  SvgWriter svg_;
  LogAxis axis_;
};

/// Even steps along the viridis colour map (van der Walt & Smith 2015): dark to light, and even to the eye without red
/// or green.
constexpr std::array<Rgb, 9> kHeatStops = {{{68, 1, 84},
                                            {71, 44, 122},
                                            {59, 81, 139},
                                            {44, 113, 142},
                                            {33, 144, 141},
                                            {39, 173, 129},
                                            {92, 200, 99},
                                            {170, 220, 50},
                                            {253, 231, 37}}};

double relative_luminance(const Rgb& colour) {
  const auto linear = [](int channel) {
    const double c = channel / 255.0;
    return c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(colour.red) + 0.7152 * linear(colour.green) + 0.0722 * linear(colour.blue);
}

std::string css_colour(const Rgb& colour) {
  return fmt::format("#{:02x}{:02x}{:02x}", colour.red, colour.green, colour.blue);
}

}  // namespace

std::string curve_chart_svg(const CurveChart& chart) {
  if (chart.lengths.empty()) return "";
  return CurveDrawing(chart).draw();
}

std::string legend_swatch_svg(std::size_t style) {
  SvgWriter svg(30, 12, "");
  svg.line(1, 6, 29, 6, series_line_attributes(style));
  draw_marker(svg, style, 15, 6);
  return svg.finish();
}

Rgb heat_colour(double fraction) {
  const double place = std::clamp(fraction, 0.0, 1.0) * (kHeatStops.size() - 1);
  const auto below = std::min(static_cast<std::size_t>(place), kHeatStops.size() - 2);
  const double weight = place - static_cast<double>(below);
  const auto mix = [&](int a, int b) { return static_cast<int>(std::lround(a + (b - a) * weight)); };
  const Rgb& a = kHeatStops[below];
  const Rgb& b = kHeatStops[below + 1];
  return {mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue)};
}

double contrast_ratio(const Rgb& one, const Rgb& other) {
  const double a = relative_luminance(one) + 0.05;
  const double b = relative_luminance(other) + 0.05;
  return a > b ? a / b : b / a;
}

bool dark_background(const Rgb& background) {
  return contrast_ratio(background, {255, 255, 255}) >= contrast_ratio(background, {0, 0, 0});
}

std::string heat_map_svg(const HeatMap& map) {
  std::set<std::int64_t> lengths;
  std::set<std::int32_t> depths;
  for (const analysis::ScorePoint& cell : *map.cells) {
    lengths.insert(cell.length_tokens);
    if (cell.depth_bp) depths.insert(*cell.depth_bp);
  }
  if (lengths.empty() || depths.empty()) return "";
  const double width = kHeatLeft + kHeatCellWidth * static_cast<double>(lengths.size()) + 4;
  const double height = kHeatTop + kHeatCellHeight * static_cast<double>(depths.size()) + kHeatBottom;
  SvgWriter svg(width, height, map.description);
  const auto column_x = [&](std::int64_t length) {
    return kHeatLeft + kHeatCellWidth * static_cast<double>(std::distance(lengths.begin(), lengths.find(length)));
  };
  const auto row_y = [&](std::int32_t depth) {
    return kHeatTop + kHeatCellHeight * static_cast<double>(std::distance(depths.begin(), depths.find(depth)));
  };
  svg.rectangle(kHeatLeft, kHeatTop, width - kHeatLeft - 4, height - kHeatTop - kHeatBottom, {{"class", "nocell"}});
  for (const analysis::ScorePoint& cell : *map.cells) {
    if (!cell.depth_bp || !cell.mean) continue;
    const Rgb colour = heat_colour(*cell.mean);
    const double x = column_x(cell.length_tokens);
    const double y = row_y(*cell.depth_bp);
    svg.rectangle(x + 0.5, y + 0.5, kHeatCellWidth - 1, kHeatCellHeight - 1, {{"fill", css_colour(colour)}});
    svg.text(x + kHeatCellWidth / 2, y + kHeatCellHeight / 2 + 4, format_percent(*cell.mean, cell.n_values),
             {{"class", dark_background(colour) ? "on-dark" : "on-light"}, {"text-anchor", "middle"}});
  }
  for (const std::int32_t depth : depths) {
    svg.text(kHeatLeft - 6, row_y(depth) + kHeatCellHeight / 2 + 4, format_depth(depth),
             {{"class", "tick"}, {"text-anchor", "end"}});
  }
  const double bottom = height - kHeatBottom;
  for (const std::int64_t length : lengths) {
    svg.text(column_x(length) + kHeatCellWidth / 2, bottom + 14, format_tokens_short(length),
             {{"class", "tick"}, {"text-anchor", "middle"}});
  }
  svg.text(kHeatLeft - 6, bottom + 14, "%", {{"class", "tick"}, {"text-anchor", "end"}});
  svg.text(kHeatLeft, bottom + 30, fmt::format("↓ {}  → {}", map.depth_label, map.length_label),
           {{"class", "marklabel"}});
  return svg.finish();
}

std::string heat_scale_svg() {
  constexpr int kSteps = 20;
  constexpr double kStepWidth = 11;
  SvgWriter svg(kSteps * kStepWidth + 60, 14, "");
  svg.text(0, 11, "0 %", {{"class", "tick"}});
  for (int i = 0; i < kSteps; ++i) {
    svg.rectangle(26 + i * kStepWidth, 1, kStepWidth + 0.5, 12,
                  {{"fill", css_colour(heat_colour((i + 0.5) / kSteps))}});
  }
  svg.text(26 + kSteps * kStepWidth + 6, 11, "100", {{"class", "tick"}});
  return svg.finish();
}

std::string track_svg(const TrackChart& track) {
  SvgWriter svg(kTrackWidth, kTrackHeight, "");
  constexpr double kMiddle = kTrackHeight / 2;
  const LogAxis axis = length_axis(track.shortest, track.longest, 8, kTrackWidth - 8);
  const auto inside = [&](std::int64_t tokens) { return axis.at(std::clamp(tokens, track.shortest, track.longest)); };
  svg.line(8, kMiddle, kTrackWidth - 8, kMiddle, {{"class", "track"}});
  if (track.trained)
    svg.line(inside(*track.trained), 2, inside(*track.trained), kTrackHeight - 2, {{"class", "trained"}});
  if (track.claimed > 0 && track.trained != track.claimed) {
    svg.line(inside(track.claimed), 2, inside(track.claimed), kTrackHeight - 2,
             {{"class", "claimed"}, {"stroke-dasharray", "3 2"}});
  }
  const auto place = [&](const analysis::EffectiveValue& value) { return value.tokens ? inside(*value.tokens) : 2.0; };
  if (track.low && track.high) {
    svg.rectangle(place(*track.low) - 2, kMiddle - 3, place(*track.high) - place(*track.low) + 4, 6,
                  {{"class", "b0 solid"}, {"rx", "3"}});
  }
  switch (track.effective.kind) {
    case analysis::Censoring::kExact:
      svg.circle(place(track.effective), kMiddle, 4.5, {{"class", "m0"}});
      break;
    case analysis::Censoring::kRight:
      svg.circle(place(track.effective), kMiddle, 4.5, {{"class", "m0"}});
      svg.path(fmt::format("M{0} {1}l4 4l-4 4", svg_number(kTrackWidth - 5), svg_number(kMiddle - 4)),
               {{"class", "arrow"}});
      break;
    case analysis::Censoring::kLeft:
      svg.path(fmt::format("M{0} {1}l-4 4l4 4", svg_number(6), svg_number(kMiddle - 4)), {{"class", "arrow"}});
      break;
    case analysis::Censoring::kNone:
      break;
  }
  return svg.finish();
}

}  // namespace fathom::reports
