#include "reports/history/form.h"

namespace fathom::reports {

const Registry<HistoryFormEntry>& history_forms() {
  static const Registry<HistoryFormEntry> kForms("history format", {
#define FATHOM_HISTORY_FORM(name) history_entries::name##_entry(),
#include "reports/history/forms.inc"
#undef FATHOM_HISTORY_FORM
                                                                   });
  return kForms;
}

}  // namespace fathom::reports
