#include "harness/train/curriculum.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/core/error.h"

namespace fathom::train {
namespace {

constexpr double kAverageKeeps = 0.9;  // of a moving average, per batch
constexpr std::int64_t kMostHops = 5;  // what the task `vt` asks for
// Short chains come in larger numbers: many statements in sight leave little to guess, and the text's order tells
// nothing.
constexpr std::int64_t kLeastChainLimit = 3;
constexpr std::int64_t kMostStatements = 12;

void move_average(double& average, double value) {
  average = kAverageKeeps * average + (1 - kAverageKeeps) * value;
}

RowTask parse_row_task(const std::string& name) {
  if (name == "niah") return RowTask::kNiah;
  if (name == "variable_tracking") return RowTask::kVariableTracking;
  if (name == "kv") return RowTask::kKeyValue;
  throw ConfigError(fmt::format("train: unknown training task '{}'; known: niah, variable_tracking, kv", name));
}

std::vector<std::int64_t> length_ladder(const Recipe& recipe, std::int64_t context) {
  std::vector<std::int64_t> ladder{std::min(recipe.first_length, context)};
  while (ladder.back() < context) {
    const auto grown = static_cast<std::int64_t>(static_cast<double>(ladder.back()) * recipe.length_growth) / 8 * 8;
    ladder.push_back(std::min(context, std::max(grown, ladder.back() + 8)));
  }
  return ladder;
}

}  // namespace

Curriculum::Curriculum(const TrainSpec& spec, const Recipe& recipe)
    : recipe_(recipe),
      task_names_(spec.tasks),
      ladder_(length_ladder(recipe, spec.context)),
      max_steps_(spec.max_steps) {
  if (spec.tasks.empty()) throw ConfigError("train: tasks is empty; known: niah, variable_tracking, kv");
  for (const std::string& name : spec.tasks) tasks_.push_back(parse_row_task(name));
  state_.task_accuracy.assign(tasks_.size(), 0.0);
}

std::int64_t Curriculum::draw_length(bool frontier, RngStream& rng) const {
  if (frontier) return current_length();
  return std::max(ladder_.front(), rng.uniform_int(ladder_.front(), current_length()) / 8 * 8);
}

RowTask Curriculum::draw_task(RngStream& rng) const {
  // A task that is mastered needs little practice to stay so; the others set the pace.
  std::vector<double> weights;
  double total = 0;
  for (const double accuracy : state_.task_accuracy) {
    weights.push_back(accuracy < wanted_accuracy() ? recipe_.lagging_weight : 1.0);
    total += weights.back();
  }
  double left = rng.uniform_double() * total;
  for (std::size_t i = 0; i + 1 < tasks_.size(); ++i) {
    left -= weights[i];
    if (left < 0) return tasks_[i];
  }
  return tasks_.back();
}

void Curriculum::plan_needles(const Batcher& batcher, RngStream& rng, BatchPlan& plan) const {
  const bool first = at_first_length();
  switch (plan.task) {
    case RowTask::kNiah: {
      const std::int64_t wanted = first ? rng.uniform_int(2, 4) : rng.uniform_int(1, 8);
      plan.n_needles = std::max<std::int64_t>(1, std::min(wanted, (plan.length_tokens - 8) / 8));
      break;
    }
    case RowTask::kKeyValue:
      plan.n_queries = batcher.fitting_queries(plan.length_tokens, 4, recipe_.n_queries);
      plan.n_needles = rng.uniform_int(1, batcher.fitting_pairs(plan.length_tokens, plan.n_queries));
      return;
    case RowTask::kVariableTracking:
      plan.n_hops = rng.uniform_int(1, kMostHops);
      plan.n_chains =
          batcher.fitting_chains(plan.length_tokens, plan.n_hops,
                                 rng.uniform_int(1, std::max(kLeastChainLimit, kMostStatements / plan.n_hops)));
      return;
  }
  plan.n_queries = batcher.fitting_queries(plan.length_tokens, plan.n_needles, recipe_.n_queries);
  // Rows with few queries put answers at every place up to the last position of a learned table.
  if (!first && rng.uniform_double() < recipe_.varied_queries_share)
    plan.n_queries = rng.uniform_int(1, plan.n_queries);
}

void Curriculum::plan_position(RngStream& rng, BatchPlan& plan) const {
  const std::int64_t last_start = recipe_.position_limit - plan.length_tokens;
  if (last_start <= 0) return;
  const std::int64_t drawn = rng.uniform_int(-recipe_.position_edge, last_start + recipe_.position_edge);
  plan.first_position = std::clamp<std::int64_t>(drawn, 0, last_start);
}

BatchPlan Curriculum::plan(const Batcher& batcher, RngStream& rng) const {
  BatchPlan plan;
  plan.at_frontier = at_first_length() || rng.uniform_double() >= recipe_.shorter_share;
  plan.length_tokens = draw_length(plan.at_frontier, rng);
  plan.n_rows = std::max<std::int64_t>(1, recipe_.batch_tokens / plan.length_tokens);
  plan.task = draw_task(rng);
  plan_needles(batcher, rng, plan);
  if (at_first_length()) {
    const bool learnt = state_.copy_accuracy >= recipe_.copy_mastery;
    const double share = learnt ? recipe_.learnt_copy_share : recipe_.copy_share;
    plan.n_copy_rows = std::max<std::int64_t>(1, static_cast<std::int64_t>(share * static_cast<double>(plan.n_rows)));
    // Copying runs against what chains need, the word in front of the match: once it works it is practised beside
    // needles only.
    if (learnt && plan.task == RowTask::kVariableTracking) plan.n_copy_rows = 0;
  }
  plan_position(rng, plan);
  return plan;
}

bool Curriculum::observe(std::int64_t step, const BatchPlan& plan, const StepResult& result) {
  if (result.copy_accuracy) move_average(state_.copy_accuracy, *result.copy_accuracy);
  const bool tells =
      plan.task != RowTask::kNiah || plan.n_needles >= 2;  // one needle is answered by naming the value in sight
  if (result.task_accuracy && plan.at_frontier && tells) {
    const auto place = std::find(tasks_.begin(), tasks_.end(), plan.task) - tasks_.begin();
    move_average(state_.task_accuracy[static_cast<std::size_t>(place)], *result.task_accuracy);
    ++state_.batches_at_rung;
  }
  if (state_.decay_start) return false;
  const bool last = at_last_length();
  if (state_.batches_at_rung >= recipe_.least_batches && worst_accuracy() >= wanted_accuracy()) {
    state_.batches_at_rung = 0;
    if (last) {
      state_.mastered = true;
      state_.decay_start = step + 1;
    } else {
      ++state_.rung;
    }
    return true;
  }
  if (step + 1 >= max_steps_ - recipe_.decay_steps) state_.decay_start = step + 1;  // the budget ends without mastery
  return false;
}

bool Curriculum::finished(std::int64_t steps) const {
  return state_.decay_start &&
         steps >= std::min(*state_.decay_start + recipe_.decay_steps, std::max(max_steps_, *state_.decay_start));
}

double Curriculum::learning_rate(std::int64_t step) const {
  const double warm = std::min(1.0, static_cast<double>(step + 1) / static_cast<double>(recipe_.warmup_steps));
  if (!state_.decay_start) return recipe_.peak_learning_rate * warm;
  const double done = static_cast<double>(step - *state_.decay_start) / static_cast<double>(recipe_.decay_steps);
  return recipe_.peak_learning_rate * warm * std::max(recipe_.lowest_decay, 1 - done);
}

std::map<std::string, double> Curriculum::mastery() const {
  std::map<std::string, double> out;
  for (std::size_t i = 0; i < tasks_.size(); ++i) out[task_names_[i]] = state_.task_accuracy[i];
  if (at_first_length()) out["copy"] = state_.copy_accuracy;
  return out;
}

double Curriculum::worst_accuracy() const {
  return *std::min_element(state_.task_accuracy.begin(), state_.task_accuracy.end());
}

}  // namespace fathom::train
