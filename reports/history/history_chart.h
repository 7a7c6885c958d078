#pragma once
// Effective context over runs as a chart.

#include <string>

#include "harness/analysis/history.h"
#include "reports/labels.h"

namespace fathom::reports {

/// Absolute effective context with its interval on a log2 axis, one place a run, changes marked. The table beneath says
/// the same in numbers.
std::string history_chart_svg(const analysis::HistorySeries& series, const Labels& labels);

}  // namespace fathom::reports
