#pragma once
// Forms of a history: one file and one line in forms.inc each.

#include <iosfwd>
#include <string_view>
#include <vector>

#include "harness/analysis/history.h"
#include "harness/core/registry.h"
#include "reports/labels.h"

namespace fathom::reports {

struct HistoryFormEntry {
  std::string_view name;       ///< as the report format of the same name
  std::string_view file_name;  ///< what `report --history --out FOLDER` calls it
  void (*write)(const std::vector<analysis::HistorySeries>& history, const Labels& labels, std::ostream& out);
};

const Registry<HistoryFormEntry>& history_forms();

namespace history_entries {

#define FATHOM_HISTORY_FORM(name) HistoryFormEntry name##_entry();
#include "reports/history/forms.inc"
#undef FATHOM_HISTORY_FORM

}  // namespace history_entries
}  // namespace fathom::reports
