#include "reports/report.h"

namespace fathom::reports {

std::vector<analysis::RunSummary> load_runs(const store::ResultReader& results, const ReportOptions& options) {
  std::vector<std::string> names = options.runs;
  if (names.empty()) {
    const std::vector<std::string> all = results.run_names();
    if (!all.empty()) names.push_back(all.back());
  }
  std::vector<analysis::RunSummary> out;
  for (const std::string& name : names) {
    const eval::RunRecord record = results.run(name).run;
    out.push_back(analysis::summarise_run(
        results, name, options.settings_of ? options.settings_of(record) : analysis::SummarySettings{}));
  }
  return out;
}

}  // namespace fathom::reports
