#pragma once
// Theory beside measurement.

#include "reports/tables.h"

namespace fathom::reports {

/// What each theory predicts for each variant, in tokens, beside the measured effective context (relative rule).
Table theory_table(const TableSource& source);
/// Rank correlation of each theory's prediction with the measured effective context over the variants it speaks about.
Table scorecard_table(const TableSource& source);
/// Effective context by position scheme (rows) and scaling method (columns); empty for one of either.
Table matrix_table(const TableSource& source);

}  // namespace fathom::reports
