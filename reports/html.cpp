#include <ostream>
#include "reports/reports.h"
namespace fathom::reports {
namespace {
void write_html(const store::ResultReader&, const ReportOptions&, std::ostream&) {}
}  // namespace
ReportEntry entries::html_entry() {
  return {"html", "one self-contained page", "index.html", &write_html};
}
}  // namespace fathom::reports
