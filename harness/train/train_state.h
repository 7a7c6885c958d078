#pragma once
// Files of a training in progress: the resumable state, the log, the lock. Torch-free.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/train/curriculum.h"

namespace fathom::train {

/// Everything that the next step depends on, besides the spec. Random draws are a function of the step number.
struct TrainState {
  std::int64_t steps = 0;  ///< done so far
  double seconds = 0;
  std::int64_t log_size_bytes =
      0;  ///< of training.jsonl when the state was taken: later lines belong to steps that will be repeated
  CurriculumState curriculum;
  std::vector<float> values, first_moment, second_moment;
};

/// Writes `path` so that a reader, or the next start after a crash, sees the old state or the new one. \throws
/// DataError
void write_train_state(const std::string& path, const std::string& canonical_spec, const TrainState& state);

/// Nothing if there is no file. \throws DataError for a damaged file or one of another spec.
std::optional<TrainState> read_train_state(const std::string& path, const std::string& canonical_spec);

/// Held by the one process that trains into a folder; the system releases it when the process ends, however it ends.
class FolderLock {
 public:
  /// \throws DataError if another process holds it or the folder cannot be written.
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace fathom::train
