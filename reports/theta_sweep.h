#pragma once
// Settings that differ in the base of the rotation alone: how far each base reads, and what theory expects of it.

#include <vector>

#include "reports/tables.h"
#include "reports/theta_chart.h"

namespace fathom::reports {

/// One setting at several bases.
struct ThetaSetting {
  std::string name;                   ///< of its variants, without the base
  std::vector<std::size_t> variants;  ///< by base, two or more
};

/// Settings by name; a run that sweeps no base has none.
std::vector<ThetaSetting> theta_settings(const analysis::RunSummary& run);

/// One row a setting and base: measured effective context (relative rule), the bound of its frequencies, the critical
/// base of its training. Empty without a sweep.
Table theta_table(const TableSource& source);

/// A chart with the names of its series, by style.
struct NamedThetaChart {
  std::vector<std::string> names;
  ThetaChart chart;
};
/// All settings, kMaxCurveSeries a chart.
std::vector<NamedThetaChart> theta_charts(const TableSource& source);

}  // namespace fathom::reports
