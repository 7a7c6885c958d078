#pragma once
// Reports turn stored results into pages and tables. Deterministic: the same database and options give the same bytes.

#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "harness/analysis/run_summary.h"
#include "harness/core/registry.h"
#include "harness/store/result_reader.h"

namespace fathom::reports {

struct ReportOptions {
  std::vector<std::string> runs;  ///< empty = the newest run
  std::string language = "en";    ///< "en" or "zh"; headings and notes of html, markdown and terminal
  bool show_timings = true;       ///< false leaves out everything that differs between two equal runs
  int terminal_columns = 100;
  bool colour = false;  ///< terminal format only
  /// The [report] section of a stored run; the command line reads it from the canonical configuration. Empty: the
  /// defaults.
  std::function<analysis::SummarySettings(const eval::RunRecord&)> settings_of;
};

struct ReportEntry {
  std::string_view name;  ///< "html", "markdown", "terminal", "json", "csv"
  std::string_view summary;
  std::string_view file_name;  ///< what `run` and `report --out FOLDER` call it, for example "index.html"
  /// \throws StoreError for an unknown run, ConfigError for an unknown language.
  void (*write)(const store::ResultReader& results, const ReportOptions& options, std::ostream& out);
};

const Registry<ReportEntry>& registry();

/// The runs that the options ask for, in their order, summarised. A database without runs gives none.
std::vector<analysis::RunSummary> load_runs(const store::ResultReader& results, const ReportOptions& options);

}  // namespace fathom::reports
