#include "reports/history/history_table.h"

#include <fmt/format.h>

#include "reports/format.h"

namespace fathom::reports {

std::string change_text(const analysis::HistoryPoint& point, const Labels& labels) {
  if (point.effective_changed && point.average_changed) {
    return labels("change_effective") + ", " + labels("change_average");
  }
  if (point.effective_changed) return labels("change_effective");
  return point.average_changed ? labels("change_average") : std::string();
}

Table history_table(const analysis::HistorySeries& series, const Labels& labels) {
  Table table;
  table.caption = visible_text(series.variant);
  table.columns = {{labels("run"), Align::kLeft}, {labels("started"), Align::kLeft}, {labels("effective")},
                   {labels("interval")},          {labels("effective_relative")},    {labels("interval")},
                   {labels("average")},           {labels("change"), Align::kLeft}};
  for (const analysis::HistoryPoint& point : series.points) {
    table.rows.push_back({{visible_text(point.run)},
                          {point.started_at},
                          {format_effective_text(point.absolute)},
                          {format_effective_range(point.absolute_low, point.absolute_high)},
                          {format_effective_text(point.relative)},
                          {format_effective_range(point.relative_low, point.relative_high)},
                          {point.average ? fmt::format("{:.1f}", *point.average) : std::string(kNothing)},
                          {change_text(point, labels)}});
  }
  return table;
}

}  // namespace fathom::reports
