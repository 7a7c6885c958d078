#include "reports/theta_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/core/text_util.h"
#include "reports/chart_marks.h"
#include "reports/format.h"
#include "reports/svg.h"

namespace fathom::reports {
namespace {

constexpr double kThetaWidth = 560;
constexpr double kThetaHeight = 300;
constexpr double kThetaLeft = 46;
constexpr double kThetaRight = 16;
constexpr double kThetaTop = 22;
constexpr double kThetaBottom = 44;
/// How far series at one base stand apart.
constexpr double kThetaDodge = 7;
/// About this many units a character of a label.
constexpr double kThetaCharacter = 6.2;
/// A mark this many times outside the sweep still has a place on the axis.
constexpr double kThetaReach = 32;

using BoundPoint = std::pair<double, double>;

/// The ends of the axis: those of the sweep, and of marks that are near enough.
std::pair<double, double> base_range(const ThetaChart& chart) {
  std::pair<double, double> range{chart.bases.front(), chart.bases.back()};
  for (const ThetaMark& mark : chart.base_marks) {
    if (mark.base * kThetaReach >= chart.bases.front()) range.first = std::min(range.first, mark.base);
    if (mark.base <= chart.bases.back() * kThetaReach) range.second = std::max(range.second, mark.base);
  }
  return range;
}

/// The parts of a line between two heights, cut where it leaves them; straight on two logarithmic axes.
std::vector<std::vector<BoundPoint>> pieces_between(const std::vector<BoundPoint>& line, double low, double high) {
  std::vector<std::vector<BoundPoint>> pieces(1);
  const auto inside = [&](const BoundPoint& p) { return p.second >= low && p.second <= high; };
  const auto crossing = [&](const BoundPoint& in, const BoundPoint& out) {
    const double edge = out.second > high ? high : low;
    const double share = std::log(edge / in.second) / std::log(out.second / in.second);
    return BoundPoint{in.first * std::pow(out.first / in.first, share), edge};
  };
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (inside(line[i])) {
      if (i > 0 && !inside(line[i - 1])) pieces.back().push_back(crossing(line[i], line[i - 1]));
      pieces.back().push_back(line[i]);
    } else if (i > 0 && inside(line[i - 1])) {
      pieces.back().push_back(crossing(line[i - 1], line[i]));
      pieces.emplace_back();
    }
  }
  return pieces;
}

class ThetaDrawing {
 public:
  explicit ThetaDrawing(const ThetaChart& chart)
      : chart_(chart),
        svg_(kThetaWidth, kThetaHeight, chart.description),
        floor_(static_cast<double>(chart.lengths.front()) / 2),
        ceiling_(static_cast<double>(chart.lengths.back()) * 1.5),
        range_(base_range(chart)),
        x_(range_.first, range_.second, kThetaLeft + 24, kThetaWidth - kThetaRight - 24),
        y_(floor_, ceiling_, kThetaHeight - kThetaBottom, kThetaTop) {}

  std::string draw() {
    draw_lengths();
    draw_bases();
    draw_trained();
    draw_marks();
    draw_bound();
    for (const ThetaChartSeries& series : chart_.series) draw_series(series);
    return svg_.finish();
  }

 private:
  void draw_lengths() {
    const double right = kThetaWidth - kThetaRight;
    svg_.line(kThetaLeft, y_.at(floor_), right, y_.at(floor_), {{"class", "axis"}});
    label_length(y_.at(floor_), "<" + format_tokens_short(chart_.lengths.front()));
    double last = y_.at(floor_);
    for (const std::int64_t length : chart_.lengths) {
      const double at = y_.at(length);
      svg_.line(kThetaLeft, at, right, at, {{"class", "grid"}});
      // Neighbouring lengths may stand too near for their names.
      if (last - at < 12) continue;
      label_length(at, format_tokens_short(length));
      last = at;
    }
  }

  void label_length(double at, const std::string& text) {
    svg_.text(kThetaLeft - 6, at + 4, text, {{"class", "tick"}, {"text-anchor", "end"}});
  }

  void draw_bases() {
    const double floor = y_.at(floor_);
    double free_from = kThetaLeft;
    for (const double base : chart_.bases) {
      const double at = x_.at(base);
      svg_.line(at, floor, at, floor + 4, {{"class", "axis"}});
      const std::string text = format_base(base);
      const double half = kThetaCharacter * display_width(text) / 2;
      if (at - half < free_from) continue;
      svg_.text(at, floor + 17, text, {{"class", "tick"}, {"text-anchor", "middle"}});
      free_from = at + half + 6;
    }
    svg_.text(kThetaWidth - kThetaRight, floor + 36, "→ " + chart_.base_label,
              {{"class", "marklabel"}, {"text-anchor", "end"}});
  }

  void draw_trained() {
    for (const std::int64_t length : chart_.trained_marks) {
      if (static_cast<double>(length) < floor_ || static_cast<double>(length) > ceiling_) continue;
      const double at = y_.at(length);
      svg_.line(kThetaLeft, at, kThetaWidth - kThetaRight, at, {{"class", "mark"}, {"stroke-dasharray", "4 3"}});
      svg_.text(kThetaWidth - kThetaRight, at - 4, chart_.trained_label + " " + format_tokens_short(length),
                {{"class", "marklabel"}, {"text-anchor", "end"}});
    }
  }

  void draw_marks() {
    double free_from = kThetaLeft;
    for (const ThetaMark& mark : chart_.base_marks) {
      const bool below = mark.base < range_.first;
      const bool beyond = mark.base > range_.second;
      const double at = below ? kThetaLeft : beyond ? kThetaWidth - kThetaRight : x_.at(mark.base);
      const std::string text = (below ? "← " : "") + mark.label + (beyond ? " →" : "");
      if (!below && !beyond) {
        svg_.line(at, kThetaTop - 6, at, y_.at(floor_), {{"class", "mark"}, {"stroke-dasharray", "1 3"}});
      }
      const double half = kThetaCharacter * display_width(text) / 2;
      const double centre = std::clamp(at, kThetaLeft + half, kThetaWidth - 2 - half);
      if (centre - half < free_from) continue;
      svg_.text(centre, 11, text, {{"class", "marklabel"}, {"text-anchor", "middle"}});
      free_from = centre + half + 6;
    }
  }

  void draw_bound() {
    bool named = false;
    for (const std::vector<BoundPoint>& piece : pieces_between(chart_.bound, floor_, ceiling_)) {
      if (piece.size() < 2) continue;
      std::string data;
      for (const BoundPoint& point : piece) {
        data += (data.empty() ? "M" : "L") + svg_number(x_.at(point.first)) + " " + svg_number(y_.at(point.second));
      }
      svg_.path(data, {{"class", "bound"}, {"stroke-dasharray", "8 3"}});
      if (named) continue;
      name_bound(piece.front());
      named = true;
    }
  }

  /// Left of the line's beginning, from where it rises, or above where there is no room.
  void name_bound(const BoundPoint& first) {
    const double x = x_.at(first.first);
    const double width = kThetaCharacter * display_width(chart_.bound_label);
    const bool fits_left = x - width - 8 > kThetaLeft;
    svg_.text(fits_left ? x - 8 : x, y_.at(first.second) - (fits_left ? 6 : 10), chart_.bound_label,
              {{"class", "marklabel halo"}, {"text-anchor", fits_left ? "end" : "start"}});
  }

  double height_of(const analysis::EffectiveValue& value) const {
    return value.tokens ? y_.at(*value.tokens) : y_.at(floor_);
  }

  void draw_series(const ThetaChartSeries& series) {
    const auto n = static_cast<double>(chart_.series.size());
    const double shift = (static_cast<double>(series.style) - (n - 1) / 2) * kThetaDodge;
    std::string data;
    for (const ThetaChartPoint& point : series.points) {
      if (point.effective.kind == analysis::Censoring::kNone) continue;
      const double x = x_.at(point.base) + shift;
      data += (data.empty() ? "M" : "L") + svg_number(x) + " " + svg_number(height_of(point.effective));
    }
    if (data.empty()) return;
    svg_.path(data, series_line_attributes(series.style));
    for (const ThetaChartPoint& point : series.points) {
      if (point.effective.kind != analysis::Censoring::kNone) draw_point(point, series.style, shift);
    }
  }

  void draw_point(const ThetaChartPoint& point, std::size_t style, double shift) {
    const double x = x_.at(point.base) + shift;
    const double y = height_of(point.effective);
    if (point.low && point.high) {
      svg_.line(x, height_of(*point.low), x, height_of(*point.high), {{"class", fmt::format("l{} whisker", style)}});
    }
    draw_marker(svg_, style, x, y);
    if (point.effective.kind == analysis::Censoring::kRight) {
      svg_.path(fmt::format("M{0} {1}l4 -5l4 5", svg_number(x - 4), svg_number(y - 6)),
                {{"class", fmt::format("l{} whisker", style)}});
    }
  }

  const ThetaChart& chart_;
  SvgWriter svg_;
  double floor_, ceiling_;  // of the axis of lengths, tokens
  std::pair<double, double> range_;
  LogAxis x_, y_;
};

}  // namespace

std::string format_base(double base) {
  if (base < 1e6) return fmt::format("{:.0f}", base);
  return replace_all(fmt::format("{:.3g}", base), "e+0", "e");
}

std::string theta_chart_svg(const ThetaChart& chart) {
  if (chart.lengths.empty() || chart.bases.empty()) return "";
  return ThetaDrawing(chart).draw();
}

}  // namespace fathom::reports
