#pragma once
// Results one by one: the part of ResultReader that reads rows.

#include <string>
#include <vector>

#include "harness/store/result_reader.h"
#include "harness/store/sample_places.h"

namespace fathom::store {

/// What ResultReader promises under the same names. \param scorer  "" = each task's main metric. \throws StoreError
std::vector<OutcomeRow> read_outcomes(const RunScope& run, const std::string& scorer);
std::vector<PairableRow> read_pairable_rows(const RunScope& run, const std::string& scorer);

}  // namespace fathom::store
