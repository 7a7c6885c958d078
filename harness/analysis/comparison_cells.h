#pragma once
// Depth cells of a comparison: where the candidate lost most.

#include "harness/analysis/comparison.h"
#include "harness/analysis/comparison_pairs.h"

namespace fathom::analysis {

/// Tests every depth cell (exact McNemar on 0/1, else sign-flip; Holm over all cells), and keeps those with the largest
/// drops, each with the samples that the candidate answered worse.
void add_worst_cells(const RunPairing& runs, const GateSettings& settings, Comparison& out);

}  // namespace fathom::analysis
