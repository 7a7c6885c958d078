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

/// \param out  a folder (the format's own file name is used) or a file name with an extension. \return the file's path.
std::string write_report(const ReportRequest& request, const std::string& out);

}  // namespace fathom::cli
