#include "harness/eval/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/core/error.h"

namespace fathom::eval {
namespace {

/// Puts the batch in hand on the list and begins another.
void finish_batch(PlannedBatch& batch, WorkList& work) {
  work.n_samples += static_cast<std::int64_t>(batch.samples.size());
  work.prompt_tokens += batch.sample_tokens * static_cast<std::int64_t>(batch.samples.size());
  const std::int64_t sample_tokens = batch.sample_tokens;
  work.batches.push_back(std::move(batch));
  batch = {};
  batch.sample_tokens = sample_tokens;
}

void append_length(const SweepPlan& plan, std::size_t task_index, std::int64_t length_tokens, WorkList& work) {
  const PlannedTask& planned = plan.tasks[task_index];
  const auto depths = cell_depths(planned);
  const auto n_depths = static_cast<std::int64_t>(depths.size());
  const std::int64_t indices_per_batch = std::max<std::int64_t>(1, plan.batch_tokens / (length_tokens * n_depths));
  PlannedBatch batch;
  batch.sample_tokens = length_tokens;
  for (std::int64_t index = 0; index < plan.n_samples; ++index) {
    for (const auto& depth : depths) batch.samples.push_back({task_index, {length_tokens, depth}, index});
    if ((index + 1) % indices_per_batch == 0 || index + 1 == plan.n_samples) finish_batch(batch, work);
  }
  work.n_cells += n_depths;
}

/// What a control leaves of the length: next to nothing without the haystack, all of it without the needle.
std::int64_t control_tokens(const SweepPlan& plan, const PlannedTask& planned, const task::TaskCell& cell) {
  try {
    return planned.task->make_sample(cell, 0, plan.seed).prompt_tokens();
  } catch (const DataError&) {  // it is refused again, and stored as such, when its turn comes
    return cell.length_tokens;
  }
}

/// Controls have no depth of their own: a sample's depth is that of its stratum.
void append_controls(const SweepPlan& plan, std::size_t task_index, std::int64_t length_tokens, WorkList& work) {
  const std::int64_t indices_per_batch = std::max<std::int64_t>(1, plan.batch_tokens / length_tokens);
  const auto& wanted = plan.only_controls;
  for (const task::Control control : plan.tasks[task_index].task->controls()) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), control) == wanted.end()) continue;
    PlannedBatch batch;
    batch.sample_tokens = control_tokens(plan, plan.tasks[task_index], {length_tokens, std::nullopt, control});
    for (std::int64_t index = 0; index < plan.control_samples; ++index) {
      batch.samples.push_back({task_index, {length_tokens, std::nullopt, control}, index});
      if ((index + 1) % indices_per_batch == 0 || index + 1 == plan.control_samples) finish_batch(batch, work);
    }
    work.n_cells += 1;
  }
}

}  // namespace

std::vector<std::int64_t> cell_lengths(const PlannedTask& task, std::uint64_t seed) {
  if (task.task->sweeps_length()) return task.lengths_tokens;
  return {task.task->smallest_length_tokens(seed)};
}

std::vector<std::optional<std::int32_t>> cell_depths(const PlannedTask& task) {
  if (!task.task->sweeps_depth() || task.depths_bp.empty()) return {std::nullopt};
  return {task.depths_bp.begin(), task.depths_bp.end()};
}

std::vector<CellRecord> refused_cells(const SweepPlan& plan, const RefusedLength& refused) {
  std::vector<CellRecord> cells;
  for (const auto& depth : cell_depths(plan.tasks[refused.task])) {
    CellRecord cell;
    cell.task = plan.tasks[refused.task].name;
    cell.length_tokens = refused.length_tokens;
    cell.depth_bp = depth;
    cell.detail = refused.reason;
    if (refused.why == RefusedLength::Why::kTooShort) {
      cell.status = SampleStatus::kTooShort;
      cell.smallest_length_tokens = refused.limit_tokens;
    } else {
      cell.status = SampleStatus::kTooLong;
    }
    cells.push_back(std::move(cell));
  }
  return cells;
}

WorkList make_work_list(const SweepPlan& plan) {
  FATHOM_CHECK(plan.n_samples >= 1 && plan.batch_tokens >= 1, "a plan needs samples and a batch ceiling");
  WorkList work;
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    const PlannedTask& planned = plan.tasks[i];
    const std::int64_t smallest = planned.task->smallest_length_tokens(plan.seed);
    const std::optional<std::int64_t> largest = planned.task->largest_length_tokens(plan.seed);
    for (const std::int64_t length : cell_lengths(planned, plan.seed)) {
      if (length < smallest) {
        work.refused.push_back({i, length, RefusedLength::Why::kTooShort, smallest,
                                fmt::format("{}: length {} is too short; smallest feasible length here is {}",
                                            planned.name.name, length, smallest)});
      } else if (largest && length > *largest) {
        work.refused.push_back({i, length, RefusedLength::Why::kTooLong, *largest,
                                fmt::format("{}: length {} is too long; largest feasible length here is {}",
                                            planned.name.name, length, *largest)});
      } else {
        append_length(plan, i, length, work);
        if (plan.controls) append_controls(plan, i, length, work);
      }
    }
  }
  return work;
}

}  // namespace fathom::eval
