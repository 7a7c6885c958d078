// A history in a terminal: one table a variant.

#include <algorithm>
#include <ostream>

#include "reports/format.h"
#include "reports/history/form.h"
#include "reports/history/history_table.h"

namespace fathom::reports {
namespace {

void write_history_row(const Table& table, const std::vector<int>& widths, const std::vector<std::string>& texts,
                       std::ostream& out) {
  std::string line;
  for (std::size_t c = 0; c < texts.size(); ++c) {
    if (c > 0) line += "  ";
    line += table.columns[c].align == Align::kRight ? fit_right(texts[c], widths[c]) : fit_left(texts[c], widths[c]);
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  out << line << "\n";
}

void write_history_terminal(const std::vector<analysis::HistorySeries>& history, const Labels& labels,
                            std::ostream& out) {
  out << labels("history") << "\n";
  if (history.empty()) out << "\n" << labels("no_runs") << "\n";
  for (const analysis::HistorySeries& series : history) {
    const Table table = history_table(series, labels);
    std::vector<int> widths;
    std::vector<std::string> headings;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      headings.push_back(table.columns[c].heading);
      int width = display_width(headings.back());
      for (const auto& row : table.rows) width = std::max(width, display_width(row[c].text));
      widths.push_back(width);
    }
    out << "\n" << table.caption << "\n";
    write_history_row(table, widths, headings, out);
    for (const auto& row : table.rows) {
      std::vector<std::string> texts;
      texts.reserve(row.size());
      for (const Cell& cell : row) texts.push_back(cell.text);
      write_history_row(table, widths, texts, out);
    }
  }
}

}  // namespace

HistoryFormEntry history_entries::terminal_entry() {
  return {"terminal", "history.txt", &write_history_terminal};
}

}  // namespace fathom::reports
