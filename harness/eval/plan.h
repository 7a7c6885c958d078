#pragma once
// The work list of one variant: which samples are asked together. A pure function of the sweep, not of what is left to
// do, so that a resumed run gives the same rows as an undisturbed one.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/eval/records.h"
#include "harness/task/task.h"

namespace fathom::eval {

/// One task of a sweep with its axes.
struct PlannedTask {
  task::TaskName name;
  const task::Task* task = nullptr;  ///< not owned
  std::vector<std::int64_t> lengths_tokens;
  std::vector<std::int32_t> depths_bp;  ///< collapses to one cell without depth if the task does not sweep depth
};

struct SweepPlan {
  std::vector<PlannedTask> tasks;
  std::int64_t n_samples = 0;  ///< per (length, depth); per length where depth does not apply
  std::uint64_t seed = 0;
  bool controls = false;                     ///< also control_samples of every control a task has, per length
  std::vector<task::Control> only_controls;  ///< of these; empty = all
  std::int64_t control_samples = 50;         ///< per length
  std::int64_t batch_tokens = 16384;         ///< ceiling of prompt tokens in a batch; a sample's depths are never split
};

/// One sample's address in the sweep.
struct PlannedSample {
  std::size_t task = 0;  ///< index into SweepPlan::tasks
  task::TaskCell cell;
  std::int64_t index = 0;
};

/// Samples answered and stored together: whole sample indices of one (task, length), each with all its depths.
struct PlannedBatch {
  std::vector<PlannedSample> samples;
  std::int64_t sample_tokens =
      0;  ///< prompt tokens a sample, for estimates: the length, or the first one's of a control
};

/// A (task, length) that cannot be built.
struct RefusedLength {
  enum class Why { kTooShort, kTooLong };
  std::size_t task = 0;
  std::int64_t length_tokens = 0;
  Why why = Why::kTooShort;
  std::int64_t limit_tokens = 0;  ///< smallest (too short) or largest (too long) length that would do
  std::string reason;
};

struct WorkList {
  std::vector<PlannedBatch> batches;
  std::vector<RefusedLength> refused;
  std::int64_t n_samples = 0;
  std::int64_t n_cells = 0;
  std::int64_t prompt_tokens = 0;  ///< about: the sum over batches
};

/// Depths a task is asked at: one entry without a value where depth is not swept.
std::vector<std::optional<std::int32_t>> cell_depths(const PlannedTask& task);

/// Lengths a task is asked at: those of the plan, or the one a task of fixed sizes takes at most.
std::vector<std::int64_t> cell_lengths(const PlannedTask& task, std::uint64_t seed);

/// The cells of a length that is refused, one a depth, without a variant.
std::vector<CellRecord> refused_cells(const SweepPlan& plan, const RefusedLength& refused);

/// Tasks in order, lengths in order, then sample indices, then controls. Lengths a task is too large or too small for
/// are refused, with the number.
WorkList make_work_list(const SweepPlan& plan);

}  // namespace fathom::eval
