#pragma once
// Cells and columns that many tables have.

#include "reports/tables.h"

namespace fathom::reports {

/// "2048", with "2K" as its detail.
Cell tokens_cell(std::int64_t tokens);
Column left_column(const std::string& heading);
Column right_column(const std::string& heading);

}  // namespace fathom::reports
