#pragma once
// What retention kept of a run: the part of ResultReader that reads it.

#include "harness/store/retention.h"
#include "harness/store/sqlite.h"

namespace fathom::store {

KeptRun read_kept(Database& database, std::int64_t run_id);

}  // namespace fathom::store
