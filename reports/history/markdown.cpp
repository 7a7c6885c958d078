// A history as Markdown tables.

#include <ostream>

#include "reports/format.h"
#include "reports/history/form.h"
#include "reports/history/history_table.h"

namespace fathom::reports {
namespace {

void write_history_markdown(const std::vector<analysis::HistorySeries>& history, const Labels& labels,
                            std::ostream& out) {
  out << "# " << labels("history") << "\n\n" << escape_markdown(labels("history_caption")) << "\n\n";
  if (history.empty()) out << labels("no_runs") << "\n";
  for (const analysis::HistorySeries& series : history) {
    const Table table = history_table(series, labels);
    out << "## " << escape_markdown(table.caption) << "\n\n|";
    for (const Column& column : table.columns) out << " " << escape_markdown(column.heading) << " |";
    out << "\n|";
    for (const Column& column : table.columns) out << (column.align == Align::kRight ? " ---: |" : " --- |");
    out << "\n";
    for (const auto& row : table.rows) {
      out << "|";
      for (const Cell& cell : row) out << " " << escape_markdown(cell.text) << " |";
      out << "\n";
    }
    out << "\n";
  }
}

}  // namespace

HistoryFormEntry history_entries::markdown_entry() {
  return {"markdown", "history.md", &write_history_markdown};
}

}  // namespace fathom::reports
