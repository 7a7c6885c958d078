#pragma once
// Theory beside measurement.

#include "harness/analysis/scorecard.h"
#include "reports/tables.h"

namespace fathom::reports {

/// What the resolved positions of a variant say; without frequencies and slopes where they do not read.
analysis::TheoryInput theory_input(const analysis::RunSummary& run, const analysis::VariantSummary& variant);

/// What each theory predicts for each variant, in tokens, beside the measured effective context (relative rule).
Table theory_table(const TableSource& source);
/// Rank correlation of each theory's prediction with the measured effective context over the variants it speaks about.
Table scorecard_table(const TableSource& source);
/// Effective context by position scheme (rows) and scaling method (columns); empty for one of either.
Table matrix_table(const TableSource& source);

}  // namespace fathom::reports
