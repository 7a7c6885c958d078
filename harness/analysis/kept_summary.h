#pragma once
// What retention keeps of a run, and the summary made from it again.

#include "harness/analysis/run_summary.h"

namespace fathom::analysis {

/// Effective context of the mean, and every task's and the mean's score by length; depth cells and samples are not
/// kept.
store::KeptRun kept_summary(const RunSummary& run);

/// Fills a summary without samples from what was kept of it.
void restore_kept(const store::KeptRun& kept, RunSummary& run);

/// Keeps the summary of one run and drops its samples. \return number of results dropped.
std::int64_t prune_run(const std::string& database, const std::string& run, const SummarySettings& settings);

}  // namespace fathom::analysis
