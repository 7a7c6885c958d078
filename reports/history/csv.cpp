// A history as comma-separated values, one line a variant and run.

#include <ostream>

#include "harness/core/text_util.h"
#include "reports/format.h"
#include "reports/history/form.h"

namespace fathom::reports {
namespace {

std::string history_csv_text(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  return "\"" + replace_all(text, "\"", "\"\"") + "\"";
}

std::string history_csv_tokens(const std::optional<analysis::EffectiveValue>& value) {
  return value && value->tokens ? std::to_string(*value->tokens) : "";
}

void write_history_csv(const std::vector<analysis::HistorySeries>& history, const Labels&, std::ostream& out) {
  out << "variant,run,started,absolute,absolute_low,absolute_high,relative,relative_low,relative_high,mean,"
         "effective_changed,mean_changed\n";
  for (const analysis::HistorySeries& series : history) {
    for (const analysis::HistoryPoint& p : series.points) {
      out << history_csv_text(series.variant) << "," << history_csv_text(p.run) << "," << p.started_at << ","
          << history_csv_tokens(p.absolute) << "," << history_csv_tokens(p.absolute_low) << ","
          << history_csv_tokens(p.absolute_high) << "," << history_csv_tokens(p.relative) << ","
          << history_csv_tokens(p.relative_low) << "," << history_csv_tokens(p.relative_high) << ","
          << (p.average ? format_double(*p.average / 100) : std::string()) << "," << (p.effective_changed ? 1 : 0)
          << "," << (p.average_changed ? 1 : 0) << "\n";
    }
  }
}

}  // namespace

HistoryFormEntry history_entries::csv_entry() {
  return {"csv", "history.csv", &write_history_csv};
}

}  // namespace fathom::reports
