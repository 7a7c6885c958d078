#pragma once
// Sums over the samples of a variant, task and length: the part of ResultReader that counts.

#include <vector>

#include "harness/store/result_reader.h"
#include "harness/store/sample_places.h"

namespace fathom::store {

/// What ResultReader promises under the same names. \throws StoreError
std::vector<ScoreMeanRow> read_score_means(const RunScope& run);
std::vector<ReplyRow> read_replies(const RunScope& run);
std::vector<ControlRow> read_controls(const RunScope& run);
std::vector<CostRow> read_costs(const RunScope& run, const std::vector<eval::VariantRecord>& variants);

}  // namespace fathom::store
