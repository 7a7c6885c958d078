#include "reports/chart_marks.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "reports/charts.h"

namespace fathom::reports {
namespace {

constexpr std::array<const char*, kMaxCurveSeries> kDashes = {"", "7 3", "2 3", "9 3 2 3", "5 2", "1 2"};

std::string marker_path(std::size_t style, double x, double y) {
  const auto point = [&](double dx, double dy) { return svg_number(x + dx) + " " + svg_number(y + dy); };
  switch (style) {
    case 1:
      return "M" + point(-3, -3) + "L" + point(3, -3) + "L" + point(3, 3) + "L" + point(-3, 3) + "Z";
    case 2:
      return "M" + point(0, -3.8) + "L" + point(3.6, 2.8) + "L" + point(-3.6, 2.8) + "Z";
    case 3:
      return "M" + point(0, -4.2) + "L" + point(4.2, 0) + "L" + point(0, 4.2) + "L" + point(-4.2, 0) + "Z";
    case 4:
      return "M" + point(0, 3.8) + "L" + point(3.6, -2.8) + "L" + point(-3.6, -2.8) + "Z";
    case 5:
      return "M" + point(-1.2, -3.6) + "H" + svg_number(x + 1.2) + "V" + svg_number(y - 1.2) + "H" +
             svg_number(x + 3.6) + "V" + svg_number(y + 1.2) + "H" + svg_number(x + 1.2) + "V" + svg_number(y + 3.6) +
             "H" + svg_number(x - 1.2) + "V" + svg_number(y + 1.2) + "H" + svg_number(x - 3.6) + "V" +
             svg_number(y - 1.2) + "H" + svg_number(x - 1.2) + "Z";
    default:
      return "";
  }
}

}  // namespace

LogAxis::LogAxis(double low, double high, double from, double to)
    : low_(std::log2(low)), high_(std::log2(high)), from_(from), to_(to) {}

double LogAxis::at(double value) const {
  if (high_ <= low_) return (from_ + to_) / 2;
  return from_ + (std::log2(value) - low_) / (high_ - low_) * (to_ - from_);
}

LogAxis length_axis(std::int64_t shortest, std::int64_t longest, double from, double to) {
  return {static_cast<double>(shortest), static_cast<double>(longest), from, to};
}

void draw_marker(SvgWriter& svg, std::size_t style, double x, double y) {
  const std::string css = fmt::format("m{}", style);
  if (style == 0) {
    svg.circle(x, y, 3.2, {{"class", css}});
  } else {
    svg.path(marker_path(style, x, y), {{"class", css}});
  }
}

SvgAttributes series_line_attributes(std::size_t style) {
  SvgAttributes attributes = {{"class", fmt::format("l{}", style)}};
  if (kDashes[style][0] != '\0') attributes.emplace_back("stroke-dasharray", kDashes[style]);
  return attributes;
}

}  // namespace fathom::reports
