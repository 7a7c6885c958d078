#pragma once
// The charts of one run: what the page draws, and the same as files of their own with their numbers.

#include <string>
#include <vector>

#include "reports/charts.h"
#include "reports/tables.h"

namespace fathom::reports {

/// Score by length of the variants first..last-1: of one task, or of the mean over tasks. Styles count from 0 at
/// `first`. The result points into the source's run.
struct CurveRequest {
  std::size_t first = 0, last = 0;    ///< at most kMaxCurveSeries variants
  const std::size_t* task = nullptr;  ///< nullptr = mean over tasks
};
CurveChart run_curve_chart(const TableSource& source, const CurveRequest& request);
/// Depth by length of one variant and task that sweeps depth.
HeatMap run_heat_map(const TableSource& source, std::size_t variant, std::size_t task);

struct ChartFile {
  std::string name;  ///< "curve-vt-1.svg": letters, digits and dashes, unique
  std::string bytes;
};
/// Every chart of the page as an SVG file that needs no page around it, each with a CSV file of its numbers.
std::vector<ChartFile> chart_files(const TableSource& source);

}  // namespace fathom::reports
