#include "reports/reports.h"

namespace fathom::reports {

const Registry<ReportEntry>& registry() {
  static const Registry<ReportEntry> kReports("report format", {
#define FATHOM_REPORT(name) entries::name##_entry(),
#include "reports/reports.inc"
#undef FATHOM_REPORT
                                                               });
  return kReports;
}

}  // namespace fathom::reports
