#pragma once
// Writing reports of a database to the terminal or to files; what `run` and `report` share.

#include <string>
#include <vector>

namespace fathom::cli {

enum class TimingColumns { kShow, kHide };

struct ReportRequest {
  std::string db;
  std::vector<std::string> runs;  ///< empty = the newest
  std::string format = "terminal";
  std::string language = "en";
  TimingColumns timings = TimingColumns::kShow;
};

/// To stdout, colours if it is a terminal.
void print_report(const ReportRequest& request);

/// The history of all runs (or of those named) instead of one run's report: to stdout, or as below.
void print_history(const ReportRequest& request);
std::string write_history(const ReportRequest& request, const std::string& out);

/// Every chart of the runs as an SVG and a CSV file in a folder, one sub-folder a run where there are several. \return
/// number of files.
std::size_t write_charts(const ReportRequest& request, const std::string& folder);

/// \param out  a folder (the format's own file name is used) or a file name with an extension. \return the file's path.
std::string write_report(const ReportRequest& request, const std::string& out);

}  // namespace fathom::cli
