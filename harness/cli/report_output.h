#pragma once
// Writing reports of a database to the terminal or to files; what `run` and `report` share.

#include <string>
#include <vector>

namespace fathom::cli {

enum class TimingColumns { kShow, kHide };

/// To stdout, colours if it is a terminal.
void print_report(const std::string& db, const std::vector<std::string>& runs, const std::string& format,
                  TimingColumns timings = TimingColumns::kShow);

/// \param out  a folder (the format's own file name is used) or a file name with an extension. \return the file's path.
std::string write_report(const std::string& db, const std::vector<std::string>& runs, const std::string& format,
                         const std::string& out, TimingColumns timings);

}  // namespace fathom::cli
