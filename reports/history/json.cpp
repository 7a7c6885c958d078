// A history for other programs: tokens, percent as 0..1, null where nothing can be said.

#include <nlohmann/json.hpp>
#include <ostream>

#include "reports/history/form.h"

namespace fathom::reports {
namespace {

using nlohmann::ordered_json;

ordered_json history_tokens(const std::optional<analysis::EffectiveValue>& value) {
  return value && value->tokens ? ordered_json(*value->tokens) : ordered_json(nullptr);
}

ordered_json history_effective(const analysis::EffectiveValue& value,
                               const std::optional<analysis::EffectiveValue>& low,
                               const std::optional<analysis::EffectiveValue>& high) {
  const char* censored = value.kind == analysis::Censoring::kRight  ? "right"
                         : value.kind == analysis::Censoring::kLeft ? "left"
                                                                    : "none";
  return {{"tokens", history_tokens(value)},
          {"censored", censored},
          {"low", history_tokens(low)},
          {"high", history_tokens(high)}};
}

void write_history_json(const std::vector<analysis::HistorySeries>& history, const Labels&, std::ostream& out) {
  ordered_json variants = ordered_json::array();
  for (const analysis::HistorySeries& series : history) {
    ordered_json runs = ordered_json::array();
    for (const analysis::HistoryPoint& point : series.points) {
      runs.push_back({{"run", point.run},
                      {"started", point.started_at},
                      {"source_revision", point.source_revision},
                      {"absolute", history_effective(point.absolute, point.absolute_low, point.absolute_high)},
                      {"relative", history_effective(point.relative, point.relative_low, point.relative_high)},
                      {"mean", point.average ? ordered_json(*point.average / 100) : ordered_json(nullptr)},
                      {"effective_changed", point.effective_changed},
                      {"mean_changed", point.average_changed}});
    }
    variants.push_back({{"name", series.variant}, {"runs", runs}});
  }
  out << ordered_json{{"variants", variants}}.dump(1, ' ', false, ordered_json::error_handler_t::replace) << "\n";
}

}  // namespace

HistoryFormEntry history_entries::json_entry() {
  return {"json", "history.json", &write_history_json};
}

}  // namespace fathom::reports
