#pragma once
// The history of one variant as plain text cells.

#include "harness/analysis/history.h"
#include "reports/tables.h"

namespace fathom::reports {

/// Run, start, effective context by both rules with intervals, average, and what changed there; oldest first.
Table history_table(const analysis::HistorySeries& series, const Labels& labels);
/// "effective context", "average", both, or nothing.
std::string change_text(const analysis::HistoryPoint& point, const Labels& labels);

}  // namespace fathom::reports
