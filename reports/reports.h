#pragma once
// Declares every entry of reports.inc; each file defines its own.

#include "reports/report.h"

namespace fathom::reports::entries {

#define FATHOM_REPORT(name) ReportEntry name##_entry();
#include "reports/reports.inc"
#undef FATHOM_REPORT

}  // namespace fathom::reports::entries
