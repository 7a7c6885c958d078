#include "harness/cli/report_output.h"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <sstream>

#include "harness/cli/console.h"
#include "harness/store/result_reader.h"
#include "reports/report.h"

namespace fathom::cli {
namespace {

reports::ReportOptions report_options(const std::vector<std::string>& runs, TimingColumns timings) {
  reports::ReportOptions options;
  options.runs = runs;
  options.show_timings = timings == TimingColumns::kShow;
  return options;
}

}  // namespace

void print_report(const std::string& db, const std::vector<std::string>& runs, const std::string& format,
                  TimingColumns timings) {
  const auto reader = store::open_reader(db);
  reports::ReportOptions options = report_options(runs, timings);
  options.terminal_columns = terminal_columns();
  options.colour = stdout_is_terminal() && environment("NO_COLOR", "").empty();
  reports::registry().at(format).write(*reader, options, std::cout);
  std::cout.flush();
}

std::string write_report(const std::string& db, const std::vector<std::string>& runs, const std::string& format,
                         const std::string& out, TimingColumns timings) {
  const reports::ReportEntry& entry = reports::registry().at(format);
  const bool is_file = std::filesystem::path(out).has_extension() && !std::filesystem::is_directory(out);
  const std::string path = is_file ? out : (std::filesystem::path(out) / std::string(entry.file_name)).string();
  const auto reader = store::open_reader(db);
  std::ostringstream text;
  entry.write(*reader, report_options(runs, timings), text);
  write_text_file(path, text.str());
  return path;
}

}  // namespace fathom::cli
