#pragma once
// Variants of a run that differ in nothing but the training seed, and how far their scores scatter.

#include <string>
#include <vector>

#include "harness/analysis/seed_spread.h"
#include "harness/store/result_reader.h"

namespace fathom::analysis {

/// One setting on one task at one length, over its training seeds.
struct SeedGroupRow {
  std::string setting;    ///< names of its variants, the part they have in common
  std::int32_t task = 0;  ///< index into ResultReader::tasks(run)
  std::int64_t length_tokens = 0;
  SeedSpread spread;  ///< on the samples that every seed answered
};

/// By setting, task, length; settings with one training seed are left out.
/// \param outcomes  of the tasks' main metrics, in the order of the reader.
std::vector<SeedGroupRow> seed_groups(const store::RunInfo& info, const std::vector<store::OutcomeRow>& outcomes);

}  // namespace fathom::analysis
