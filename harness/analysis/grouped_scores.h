#pragma once
// Scores of one variant on one task by length and sample, with what failed.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/analysis/effective_context.h"
#include "harness/store/result_reader.h"

namespace fathom::analysis {

using OutcomeRange = std::pair<std::size_t, std::size_t>;  ///< [begin, end) into the outcomes of a run

struct GroupedScores {
  std::vector<LengthScores> lengths;              ///< shortest first
  std::map<std::int64_t, std::int64_t> n_failed;  ///< by length: not ok, or without a score
  std::int64_t n_values = 0;
  std::int64_t n_all_failed = 0;
};

bool is_scored(const store::OutcomeRow& row);

/// Groups the rows of one variant and task. A length with more than 1 % of its rows failed is unscored (specification
/// 4.1), with the reason.
/// \param outcomes  in the order of ResultReader::outcomes.
GroupedScores group_scores(const std::vector<store::OutcomeRow>& outcomes, OutcomeRange range);

/// "no_position: the model's position table ends before": why a length with this status holds no score.
std::string unscored_reason(eval::SampleStatus status);

/// Where the tasks of a mean leave a length unscored for different reasons, each reason gets its task's name.
/// \param tasks   one a label; lengths as in `group_scores`.
void name_unscored_tasks(const std::vector<std::string>& labels, std::vector<std::vector<LengthScores>>& tasks);

}  // namespace fathom::analysis
