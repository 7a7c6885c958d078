#include "reports/table_parts.h"

#include "reports/format.h"

namespace fathom::reports {

Cell tokens_cell(std::int64_t tokens) {
  return {format_tokens(tokens), k_form(tokens)};
}

Column left_column(const std::string& heading) {
  return {heading, Align::kLeft};
}

Column right_column(const std::string& heading) {
  return {heading, Align::kRight};
}

}  // namespace fathom::reports
