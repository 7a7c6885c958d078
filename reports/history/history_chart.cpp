#include "reports/history/history_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "reports/format.h"
#include "reports/svg.h"

namespace fathom::reports {
namespace {

constexpr double kChartWidth = 720;
constexpr double kChartHeight = 220;
constexpr double kLeftMargin = 56;
constexpr double kRightMargin = 16;
constexpr double kTopMargin = 20;
constexpr double kBottomMargin = 30;
/// Labels of this many runs fit beneath the axis.
constexpr std::size_t kMaxRunLabels = 8;

/// log2 of the tokens, half the first tested length where nothing passes.
std::optional<double> chart_height_of(const std::optional<analysis::EffectiveValue>& value) {
  if (!value) return std::nullopt;
  if (value->tokens) return std::log2(static_cast<double>(*value->tokens));
  if (value->kind == analysis::Censoring::kLeft && value->first_tested) {
    return std::log2(static_cast<double>(*value->first_tested)) - 1;
  }
  return std::nullopt;
}

class HistoryChart {
 public:
  HistoryChart(const analysis::HistorySeries& series, const Labels& labels)
      : series_(series),
        labels_(labels),
        svg_(kChartWidth, kChartHeight, fmt::format("{}: {}", labels("history"), visible_text(series.variant))) {
    for (const analysis::HistoryPoint& point : series.points) {
      for (const auto& value : {std::optional(point.absolute), point.absolute_low, point.absolute_high}) {
        const std::optional<double> height = chart_height_of(value);
        if (!height) continue;
        lowest_ = std::min(lowest_, std::floor(*height));
        highest_ = std::max(highest_, std::ceil(*height));
      }
    }
    if (lowest_ > highest_) lowest_ = highest_ = 8;
    if (lowest_ == highest_) highest_ += 1;
  }

  std::string draw() {
    draw_axes();
    draw_band();
    draw_line();
    return svg_.finish();
  }

 private:
  double x_of(std::size_t run) const {
    const auto n = static_cast<double>(series_.points.size());
    return kLeftMargin + (static_cast<double>(run) + 0.5) * (kChartWidth - kLeftMargin - kRightMargin) / n;
  }
  double y_of(double height) const {
    const double share = (height - lowest_) / (highest_ - lowest_);
    return kChartHeight - kBottomMargin - share * (kChartHeight - kTopMargin - kBottomMargin);
  }

  void draw_axes() {
    for (double height = lowest_; height <= highest_; height += 1) {
      svg_.line(kLeftMargin, y_of(height), kChartWidth - kRightMargin, y_of(height), {{"class", "grid"}});
      svg_.text(kLeftMargin - 6, y_of(height) + 4, format_tokens_short(std::llround(std::exp2(height))),
                {{"text-anchor", "end"}});
    }
    const std::size_t every = (series_.points.size() + kMaxRunLabels - 1) / kMaxRunLabels;
    for (std::size_t i = 0; i < series_.points.size(); i += every) {
      const analysis::HistoryPoint& point = series_.points[i];
      // A date says more in little room than a name.
      svg_.text(x_of(i), kChartHeight - 8, point.started_at.size() >= 10 ? point.started_at.substr(0, 10) : point.run,
                {{"text-anchor", "middle"}});
    }
  }

  void draw_band() {
    std::string path;
    for (std::size_t i = 0; i < series_.points.size(); ++i) {
      const auto high = chart_height_of(series_.points[i].absolute_high);
      if (high) path += fmt::format("{}{} {}", path.empty() ? "M" : "L", svg_number(x_of(i)), svg_number(y_of(*high)));
    }
    if (path.empty()) return;
    for (std::size_t i = series_.points.size(); i-- > 0;) {
      const auto low = chart_height_of(series_.points[i].absolute_low);
      if (low) path += fmt::format("L{} {}", svg_number(x_of(i)), svg_number(y_of(*low)));
    }
    svg_.path(path + "Z", {{"class", "b0"}});
  }

  void draw_line() {
    std::string path;
    for (std::size_t i = 0; i < series_.points.size(); ++i) {
      const analysis::HistoryPoint& point = series_.points[i];
      if (point.effective_changed || point.average_changed) {
        const double x = (i == 0 ? x_of(0) : (x_of(i - 1) + x_of(i)) / 2);
        svg_.line(x, kTopMargin - 6, x, kChartHeight - kBottomMargin, {{"class", "mark"}, {"stroke-dasharray", "3 3"}});
        svg_.text(x, kTopMargin - 9, labels_("change"), {{"class", "marklabel"}, {"text-anchor", "middle"}});
      }
      const auto height = chart_height_of(point.absolute);
      if (!height) continue;
      path += fmt::format("{}{} {}", path.empty() ? "M" : "L", svg_number(x_of(i)), svg_number(y_of(*height)));
    }
    if (!path.empty()) svg_.path(path, {{"class", "l0"}});
    for (std::size_t i = 0; i < series_.points.size(); ++i) {
      const auto height = chart_height_of(series_.points[i].absolute);
      if (height) svg_.circle(x_of(i), y_of(*height), 4, {{"class", "m0"}});
    }
  }

  const analysis::HistorySeries& series_;
  const Labels& labels_;
  SvgWriter svg_;
  double lowest_ = 64, highest_ = -1;
};

}  // namespace

std::string history_chart_svg(const analysis::HistorySeries& series, const Labels& labels) {
  if (series.points.empty()) return "";
  return HistoryChart(series, labels).draw();
}

}  // namespace fathom::reports
