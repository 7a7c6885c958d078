#pragma once
// How replies ended and how well prompts filled their length: the part of ResultReader that counts both.

#include <cstdint>
#include <map>
#include <vector>

#include "harness/store/result_reader.h"
#include "harness/store/sqlite.h"

namespace fathom::store {

/// What ResultReader::replies promises. \param task_of_id  index into ResultReader::tasks by task_id.
std::vector<ReplyRow> read_replies(Database& database, std::int64_t run_id,
                                   const std::map<std::int64_t, std::int32_t>& task_of_id);

}  // namespace fathom::store
