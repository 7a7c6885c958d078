#pragma once
// The misses of a run, grouped by variant, and what the search form over them offers.

#include <string>
#include <vector>

#include "reports/tables.h"

namespace fathom::reports {

struct MissGroup {
  std::string variant;
  Table table;
};
std::vector<MissGroup> miss_groups(const TableSource& source);

/// Choices in the order of the page: variants as they come, task names sorted, lengths shortest first.
struct MissChoices {
  std::vector<std::string> variants, tasks, lengths;
};
MissChoices miss_choices(const TableSource& source);

/// What is said above them: how many a cell, and whether some cells are left out.
std::string misses_lead(const TableSource& source);

}  // namespace fathom::reports
