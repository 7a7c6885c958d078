#pragma once
// Which samples two runs have in common.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/analysis/comparison.h"

namespace fathom::analysis {

/// A task that both runs have in the same version.
struct CommonTask {
  std::string label;  ///< "vt", "niah_single_2@ruler"
  double blind_guess = 0;
  std::int32_t baseline = 0, candidate = 0;  ///< indices into ComparisonSide::tasks
};

/// One sample that both variants answered.
struct PairedRow {
  std::size_t task = 0;  ///< index into RunPairing::tasks
  std::int64_t length_tokens = 0;
  std::optional<std::int32_t> depth_bp;
  std::int64_t index = 0;
  double baseline = 0, candidate = 0;
  std::int64_t baseline_result_id = 0, candidate_result_id = 0;
};

/// Two results at one place of the sweep whose questions differ, to find out why.
struct OtherQuestion {
  std::int64_t baseline_result_id = 0, candidate_result_id = 0;
};

/// Everything that one pair of variants has in common.
struct VariantPairing {
  VariantPair pair;
  std::vector<PairedRow> rows;                                         ///< by task, length, depth, index
  std::map<std::pair<std::size_t, std::int64_t>, SharedCount> counts;  ///< by task and length
  std::int64_t n_baseline_cells_missing = 0;  ///< (task, length, depth) of the baseline without a sample in common
  std::string missing_example;                ///< one of them
  std::optional<OtherQuestion> other_question;
};

struct RunPairing {
  std::vector<CommonTask> tasks;
  std::vector<VariantPairing> variants;
  std::vector<std::string> only_baseline_tasks, only_candidate_tasks;
  std::vector<std::string> only_baseline_variants, only_candidate_variants;
};

/// \throws ConfigError if the runs' seeds differ, or a task is there in different versions or metrics only.
RunPairing pair_runs(const ComparisonSide& baseline, const ComparisonSide& candidate);

}  // namespace fathom::analysis
