// A history as one self-contained page: a chart and a table a variant.

#include <fmt/format.h>
#include <mustache.hpp>

#include <ostream>

#include "harness/core/error.h"
#include "reports/embedded.h"
#include "reports/format.h"
#include "reports/history/form.h"
#include "reports/history/history_chart.h"
#include "reports/history/history_table.h"

namespace fathom::reports {
namespace {

using kainjow::mustache::data;
using kainjow::mustache::list;
using kainjow::mustache::object;

object history_table_data(const Table& table) {
  list columns;
  for (const Column& column : table.columns) {
    columns.push_back(object{{"heading", column.heading}, {"right", column.align == Align::kRight}});
  }
  list rows;
  for (const auto& row : table.rows) {
    list cells;
    object head;
    for (std::size_t c = 0; c < row.size(); ++c) {
      object cell{{"text", row[c].text}, {"label", table.columns[c].heading}};
      cell["right"] = table.columns[c].align == Align::kRight;
      cell["detail"] = false;
      cell["raw"] = false;
      if (c == 0) {
        head = cell;
      } else {
        cells.push_back(cell);
      }
    }
    rows.push_back(object{{"head", head}, {"cells", data(cells)}});
  }
  return {{"css", ""}, {"name", table.caption}, {"columns", data(columns)}, {"rows", data(rows)}};
}

void write_history_html(const std::vector<analysis::HistorySeries>& history, const Labels& labels, std::ostream& out) {
  list variants;
  for (const analysis::HistorySeries& series : history) {
    const Table table = history_table(series, labels);
    variants.push_back(object{
        {"name", table.caption}, {"svg", history_chart_svg(series, labels)}, {"table", history_table_data(table)}});
  }
  object page{{"lang", labels.language()},
              {"style", std::string(embedded_file("templates/style.css"))},
              {"title", labels("history")},
              {"caption", labels("history_caption")},
              {"variants", data(variants)}};
  if (history.empty()) page["empty"] = object{{"text", labels("no_runs")}};
  page["table_partial"] =
      kainjow::mustache::partial([] { return std::string(embedded_file("templates/table.mustache")); });
  kainjow::mustache::mustache page_template{std::string(embedded_file("templates/history.mustache"))};
  FATHOM_CHECK(page_template.is_valid(), "history.mustache: " + page_template.error_message());
  out << page_template.render(page);
}

}  // namespace

HistoryFormEntry history_entries::html_entry() {
  return {"html", "history.html", &write_history_html};
}

}  // namespace fathom::reports
