#include "reports/comparison/form.h"

namespace fathom::reports {

const Registry<ComparisonFormEntry>& comparison_forms() {
  static const Registry<ComparisonFormEntry> kForms("compare format", {
#define FATHOM_COMPARISON_FORM(name) comparison_entries::name##_entry(),
#include "reports/comparison/forms.inc"
#undef FATHOM_COMPARISON_FORM
                                                                      });
  return kForms;
}

}  // namespace fathom::reports
