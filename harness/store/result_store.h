#pragma once
// Write side of the results database.

#include <memory>
#include <string>

#include "harness/eval/result_sink.h"

namespace fathom::store {

/// Creates the database or migrates an older one. WAL, foreign_keys=ON, synchronous=NORMAL, busy timeout, one transaction per batch.
/// \throws StoreError for a read-only or full disk, a locked database, a file that is no database, a newer schema (names both versions).
std::unique_ptr<eval::ResultSink> open_store(const std::string& path);

}  // namespace fathom::store
