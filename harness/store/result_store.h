#pragma once
// Write side of the results database.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "harness/eval/result_sink.h"

namespace fathom::store {

struct StoreOptions {
  int busy_timeout_ms = 10000;                 ///< wait for another writer before giving up
  std::optional<std::int64_t> max_size_bytes;  ///< refuse to grow beyond this, as a full disk would
  std::string reuse_run;                       ///< run of the same database whose answers are taken over; empty = none
};

/// Creates the database or migrates an older one. WAL, foreign_keys=ON, synchronous=NORMAL, busy timeout, one
/// transaction per batch.
///
/// A batch put twice leaves the rows of the second time, not two sets. `finished_keys` are those of samples with a
/// status that another try would not change: ok, too_short, too_long, no_position; out of memory, engine errors and
/// cancelled samples are tried again.
///
/// With `reuse_run`, `take_over` copies that run's answers where the result key is the same: same question, weights,
/// position settings, dtype, kernel and batch ceiling.
///
/// \throws StoreError for a run to reuse that is not there, a read-only or full disk, a locked database, a file that is
/// no database, a newer schema (names both versions).
std::unique_ptr<eval::ResultSink> open_store(const std::string& path, const StoreOptions& options = {});

}  // namespace fathom::store
