#pragma once
// Forms of a comparison: one file and one line in forms.inc each.

#include <iosfwd>
#include <string_view>

#include "harness/analysis/comparison.h"
#include "harness/core/registry.h"

namespace fathom::reports {

/// Texts come from the outcome alone: the same comparison gives the same bytes.
struct ComparisonFormEntry {
  std::string_view name;  ///< "text", "json", "junit", "github"
  std::string_view summary;
  void (*write)(const analysis::Comparison& comparison, std::ostream& out);
};

const Registry<ComparisonFormEntry>& comparison_forms();

namespace comparison_entries {

#define FATHOM_COMPARISON_FORM(name) ComparisonFormEntry name##_entry();
#include "reports/comparison/forms.inc"
#undef FATHOM_COMPARISON_FORM

}  // namespace comparison_entries
}  // namespace fathom::reports
