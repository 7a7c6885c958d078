#pragma once
// Which batch comes next, and when a length counts as mastered. Decisions depend on the steps so far only, never on
// time. Torch-free.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/random.h"
#include "harness/train/batcher.h"
#include "harness/train/recipe.h"

namespace fathom::train {

/// Everything the curriculum remembers; part of the resumable state.
struct CurriculumState {
  std::int64_t rung = 0;                    ///< index into the ladder of lengths
  std::int64_t batches_at_rung = 0;         ///< of the longest length
  double copy_accuracy = 0;                 ///< moving averages of answer accuracy
  std::vector<double> task_accuracy;        ///< one per task, in the spec's order
  std::optional<std::int64_t> decay_start;  ///< step at which the final decay begins
  bool mastered = false;
};

/// What a step measured.
struct StepResult {
  std::optional<double> copy_accuracy;
  std::optional<double> task_accuracy;
};

class Curriculum {
 public:
  /// \throws ConfigError for an unknown task.
  Curriculum(const TrainSpec& spec, const Recipe& recipe);

  BatchPlan plan(const Batcher& batcher, RngStream& rng) const;
  /// Takes in step `step` (from 0). Returns true if it mastered the current length.
  bool observe(std::int64_t step, const BatchPlan& plan, const StepResult& result);
  /// True when the final decay is over after `steps` steps.
  bool finished(std::int64_t steps) const;
  double learning_rate(std::int64_t step) const;

  std::int64_t current_length() const { return ladder_[static_cast<std::size_t>(state_.rung)]; }
  const std::vector<std::int64_t>& ladder() const { return ladder_; }
  /// By task name; "copy" while there are copy rows.
  std::map<std::string, double> mastery() const;
  double worst_accuracy() const;

  const CurriculumState& state() const { return state_; }
  void set_state(const CurriculumState& state) { state_ = state; }

 private:
  bool at_first_length() const { return state_.rung == 0; }
  bool at_last_length() const { return current_length() == ladder_.back(); }
  double wanted_accuracy() const { return at_last_length() ? recipe_.final_mastery : recipe_.mastery; }
  RowTask draw_task(RngStream& rng) const;
  std::int64_t draw_length(bool frontier, RngStream& rng) const;
  void plan_needles(const Batcher& batcher, RngStream& rng, BatchPlan& plan) const;
  void plan_position(RngStream& rng, BatchPlan& plan) const;

  Recipe recipe_;
  std::vector<std::string> task_names_;
  std::vector<RowTask> tasks_;
  std::vector<std::int64_t> ladder_;
  std::int64_t max_steps_;
  CurriculumState state_;
};

}  // namespace fathom::train
