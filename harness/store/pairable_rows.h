#pragma once
// Samples one by one, as a comparison of two runs needs them: the part of ResultReader that reads rows and texts.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/store/result_reader.h"
#include "harness/store/sqlite.h"

namespace fathom::store {

struct PairableQuery {
  std::int64_t run_id = 0;
  std::map<std::int64_t, std::int32_t> task_of_id;  ///< index into ResultReader::tasks by task_id
  std::string scorer;                               ///< "" = each task's main metric
};

/// What ResultReader promises under the same names. \throws StoreError
std::vector<PairableRow> read_pairable_rows(Database& database, const PairableQuery& query);
AnswerText read_answer(Database& database, std::int64_t result_id);
PromptText read_prompt(Database& database, std::int64_t result_id);
std::map<std::string, std::vector<std::int64_t>> read_scorer_versions(Database& database, std::int64_t run_id);

}  // namespace fathom::store
