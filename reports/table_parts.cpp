#include "reports/table_parts.h"

#include "reports/format.h"

namespace fathom::reports {

Cell tokens_cell(std::int64_t tokens) {
  return {format_tokens(tokens), k_form(tokens)};
}

Cell effective_cell(const analysis::EffectiveValue& value) {
  return {format_effective_text(value), value.tokens ? k_form(*value.tokens) : ""};
}

const analysis::ScorePoint* point_at(const std::vector<analysis::ScorePoint>& curve, std::int64_t length_tokens) {
  for (const analysis::ScorePoint& point : curve) {
    if (point.length_tokens == length_tokens) return &point;
  }
  return nullptr;
}

Column left_column(const std::string& heading) {
  return {heading, Align::kLeft};
}

Column right_column(const std::string& heading) {
  return {heading, Align::kRight};
}

void add_token_columns(const std::set<std::int64_t>& tokens, Table& table) {
  for (const std::int64_t n : tokens) table.columns.push_back(right_column(format_tokens_short(n)));
}

std::string shown_variant(const TableSource& source, std::int32_t variant) {
  return visible_text(source.run.variants[static_cast<std::size_t>(variant)].record.name);
}

std::string shown_task(const TableSource& source, std::int32_t task) {
  return visible_text(source.run.tasks[static_cast<std::size_t>(task)].label);
}

}  // namespace fathom::reports
