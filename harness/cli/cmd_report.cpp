#include <fmt/format.h>

#include "harness/cli/command_entries.h"
#include "harness/cli/report_output.h"
#include "harness/core/error.h"
#include "reports/report.h"

namespace fathom::cli {
namespace {

int run_report(const Arguments& arguments) {
  const auto db = arguments.get("db");
  if (!db) throw ConfigError("report: --db FILE is missing; for example: fathom report --db quickstart.db");
  const ReportRequest request = {*db, arguments.all("run"), arguments.get_or("format", "terminal"),
                                 arguments.get_or("lang", "en"),
                                 arguments.has("no-timings") ? TimingColumns::kHide : TimingColumns::kShow};
  if (const auto charts = arguments.get("charts")) {
    fmt::print("{} files in {}\n", write_charts(request, *charts), *charts);
    return static_cast<int>(ExitCode::kOk);
  }
  const bool history = arguments.has("history");
  if (const auto out = arguments.get("out")) {
    fmt::print("{}\n", history ? write_history(request, *out) : write_report(request, *out));
  } else if (history) {
    print_history(request);
  } else {
    print_report(request);
  }
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace

CommandEntry entries::report_entry() {
  return {
      "report",
      "claimed, trained and effective context, curves, heat maps: page, table or JSON",
      "Reads a results database and draws its newest run (or the runs named). html is one self-contained file.",
      {"fathom report --db quickstart.db", "fathom report --db quickstart.db --format html --out reports/out/mine",
       "fathom report --db quickstart.db --format json --run nightly-7", "fathom report --db nightly.db --history"},
      {},
      {{"db", "FILE", "results database", {}},
       {"format", "NAME", "html, markdown, csv, json or terminal (default)", reports::registry().names()},
       {"out", "PATH", "file, or folder for the format's own file name; without it: standard output", {}},
       {"run", "NAME", "run to show (default: the newest); may be repeated", {}, OptionSpec::Count::kRepeated},
       {"charts", "FOLDER", "write every chart as an SVG file with a CSV file of its numbers, and nothing else", {}},
       {"history", "", "effective context of every variant over all runs (or those named), with change points", {}},
       {"lang", "CODE", "language of headings and notes: en or zh", {"en", "zh"}},
       {"no-timings", "", "leave out dates, durations and hardware: equal runs give equal bytes", {}}},
      run_report};
}

}  // namespace fathom::cli
