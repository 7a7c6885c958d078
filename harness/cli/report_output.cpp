#include "harness/cli/report_output.h"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <set>
#include <sstream>

#include "harness/analysis/run_summary.h"
#include "harness/cli/console.h"
#include "harness/config/parse.h"
#include "harness/store/result_reader.h"
#include "reports/report.h"

namespace fathom::cli {
namespace {

reports::ReportOptions report_options(const ReportRequest& request) {
  reports::ReportOptions options;
  options.runs = request.runs;
  options.language = request.language;
  options.show_timings = request.timings == TimingColumns::kShow;
  options.settings_of = [](const eval::RunRecord& run) {
    return analysis::summary_settings(config::parse_config(run.canonical_config, run.name + ".ini", {}).report);
  };
  return options;
}

}  // namespace

void print_report(const ReportRequest& request) {
  const auto reader = store::open_reader(request.db);
  reports::ReportOptions options = report_options(request);
  options.terminal_columns = terminal_columns();
  options.colour = stdout_is_terminal() && environment("NO_COLOR", "").empty();
  reports::registry().at(request.format).write(*reader, options, std::cout);
  std::cout.flush();
}

std::string write_report(const ReportRequest& request, const std::string& out) {
  const reports::ReportEntry& entry = reports::registry().at(request.format);
  // A folder may have a dot in its name; only the extensions that reports have make it a file.
  static const std::set<std::string> kExtensions = {".html", ".md", ".csv", ".json", ".txt"};
  const bool is_file =
      kExtensions.count(std::filesystem::path(out).extension().string()) != 0 && !std::filesystem::is_directory(out);
  const std::string path = is_file ? out : (std::filesystem::path(out) / std::string(entry.file_name)).string();
  const auto reader = store::open_reader(request.db);
  std::ostringstream text;
  entry.write(*reader, report_options(request), text);
  write_text_file(path, text.str());
  return path;
}

}  // namespace fathom::cli
