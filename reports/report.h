#pragma once
// Reports turn stored results into pages and tables. Deterministic: the same database and options give the same bytes.

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/registry.h"
#include "harness/store/result_reader.h"

namespace fathom::reports {

struct ReportOptions {
  std::vector<std::string> runs;         ///< empty = the newest run
  std::string language = "en";
  bool show_timings = true;              ///< false leaves out everything that differs between two equal runs
  int terminal_columns = 100;
  bool colour = false;                   ///< terminal format only
};

struct ReportEntry {
  std::string_view name;                 ///< "html", "markdown", "terminal", "json", "csv"
  std::string_view summary;
  std::string_view file_name;            ///< what `run` and `report --out FOLDER` call it, for example "index.html"
  void (*write)(const store::ResultReader& results, const ReportOptions& options, std::ostream& out);
};

const Registry<ReportEntry>& registry();

}  // namespace fathom::reports
