#pragma once
// Results of other tools as tables: one a source, after the runs of a report.

#include <vector>

#include "harness/analysis/imported_summary.h"
#include "reports/labels.h"
#include "reports/tables.h"

namespace fathom::reports {

struct ImportedSection {
  analysis::ImportedSummary summary;
  Table table;                     ///< a row a model; its caption is the source's name
  std::vector<std::string> notes;  ///< the rule, contradictions, where the numbers come from
};

/// One section a source, in the order they were imported.
std::vector<ImportedSection> imported_sections(const store::ResultReader& results, const Labels& labels);

}  // namespace fathom::reports
