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
#include "reports/history/form.h"
#include "reports/report.h"
#include "reports/run_charts.h"

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

/// \param file_name  what the format is called in a folder.
std::string output_path(const std::string& out, std::string_view file_name) {
  // A folder may have a dot in its name; only the extensions that reports have make it a file.
  static const std::set<std::string> kExtensions = {".html", ".md", ".csv", ".json", ".txt"};
  const bool is_file =
      kExtensions.count(std::filesystem::path(out).extension().string()) != 0 && !std::filesystem::is_directory(out);
  return is_file ? out : (std::filesystem::path(out) / std::string(file_name)).string();
}

void write_history_to(const ReportRequest& request, std::ostream& out) {
  const auto reader = store::open_reader(request.db);
  const auto history = analysis::run_history(*reader, request.runs, report_options(request).settings_of);
  reports::history_forms().at(request.format).write(history, reports::Labels(request.language), out);
}

}  // namespace

void print_history(const ReportRequest& request) {
  write_history_to(request, std::cout);
  std::cout.flush();
}

std::string write_history(const ReportRequest& request, const std::string& out) {
  const std::string path = output_path(out, reports::history_forms().at(request.format).file_name);
  std::ostringstream text;
  write_history_to(request, text);
  write_text_file(path, text.str());
  return path;
}

std::size_t write_charts(const ReportRequest& request, const std::string& folder) {
  const auto reader = store::open_reader(request.db);
  const reports::Labels labels(request.language);
  const std::vector<analysis::RunSummary> runs = reports::load_runs(*reader, report_options(request));
  std::size_t n_files = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::filesystem::path place =
        runs.size() == 1 ? std::filesystem::path(folder) : std::filesystem::path(folder) / fmt::format("run{}", i + 1);
    for (const reports::ChartFile& file : reports::chart_files({runs[i], labels, false})) {
      write_text_file((place / file.name).string(), file.bytes);
      ++n_files;
    }
  }
  return n_files;
}

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
  const std::string path = output_path(out, entry.file_name);
  const auto reader = store::open_reader(request.db);
  std::ostringstream text;
  entry.write(*reader, report_options(request), text);
  write_text_file(path, text.str());
  return path;
}

}  // namespace fathom::cli
