#pragma once
// Texts of single results: the part of ResultReader that reads prompts, references and replies.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/store/result_reader.h"
#include "harness/store/sqlite.h"

namespace fathom::store {

struct MissQuery {
  const std::vector<eval::VariantRecord>& variants;  ///< of the run
  const std::vector<TaskInfo>& tasks;                ///< of the run
  int max_per_cell = 0;
};

/// What ResultReader promises under the same names. \throws StoreError
std::vector<MissRow> read_misses(Database& database, const std::vector<OutcomeRow>& outcomes, const MissQuery& query);
AnswerText read_answer(Database& database, std::int64_t result_id);
PromptText read_prompt(Database& database, std::int64_t result_id);
std::map<std::string, std::vector<std::int64_t>> read_scorer_versions(Database& database, std::int64_t run_id);

}  // namespace fathom::store
