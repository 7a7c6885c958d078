#include "harness/cli/dry_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <vector>

#include "harness/checkpoint/prefill_cost.h"
#include "harness/cli/console.h"
#include "harness/core/text_util.h"
#include "harness/engine/diagnostics.h"

namespace fathom::cli {
namespace {

/// Times prompts by what this machine's kernels reach; measures each of them once.
class PrefillClock {
 public:
  double seconds(const SessionModel& model, const std::string& dtype, std::int64_t tokens, std::int64_t length_tokens) {
    // A tiny model that is not trained yet: two layers of 128 with four heads, well enough for an estimate.
    checkpoint::PrefillFlops flops{0.6e6, 512.0 * static_cast<double>(length_tokens)};
    std::int64_t d_head = 32;
    if (model.checkpoint) {
      flops = checkpoint::prefill_flops_per_token(*model.checkpoint, length_tokens);
      for (const checkpoint::LayerSpec& layer : model.checkpoint->config().layers) {
        if (layer.softmax_attention) d_head = layer.d_head;
      }
    }
    const engine::KernelSpeed& attention = attention_speed(d_head);
    const bool bf16 = !model.train_spec && dtype != "float32" && products_.bf16_gflops > products_.float32_gflops;
    const double per_token =
        bf16 ? flops.matrices / (kReached * products_.bf16_gflops) + flops.attention / attention.bf16_gflops
             : flops.matrices / (kReached * products_.float32_gflops) + flops.attention / attention.float32_gflops;
    return static_cast<double>(tokens) * per_token / 1e9 * (model.train_spec ? 3 : 1);
  }

 private:
  const engine::KernelSpeed& attention_speed(std::int64_t d_head) {
    const auto [speed, is_new] = attention_.try_emplace(d_head);
    if (is_new) speed->second = engine::measure_attention_speed(d_head);
    return speed->second;
  }

  // What the layers reach of the products' speed with all that is done between two products.
  static constexpr double kReached = 0.7;
  engine::KernelSpeed products_ = engine::measure_prefill_speed();
  std::map<std::int64_t, engine::KernelSpeed> attention_;
};

/// Where every token is computed together with all that precede it: once for the prompt, once for each further token of
/// the longest answer, once for each candidate.
std::int64_t passes_per_sample(const eval::SweepPlan& plan, const eval::PlannedSample& planned, bool graded) {
  const task::Sample sample = plan.tasks[planned.task].task->make_sample(planned.cell, planned.index, plan.seed);
  const std::int64_t n_candidates = graded ? static_cast<std::int64_t>(sample.candidates.size()) : 0;
  return std::max<std::int64_t>(1, sample.generation_budget + sample.think_budget) + n_candidates;
}

}  // namespace

std::string recomputation_note(const std::vector<std::int64_t>& lengths) {
  return fmt::format(
      "at {} tokens the angles change with every token, and each token of an answer costs a whole prompt; "
      "scaling.mode = frozen (one table for a length) or hf (as transformers does) costs one prompt a sample",
      fmt::join(lengths, ", "));
}

void dry_run(RunSession& session) {
  PrefillClock clock;
  double sweep_seconds = 0;
  double train_seconds = 0;
  std::int64_t cells = 0;
  std::int64_t samples = 0;
  std::int64_t tokens = 0;
  fmt::print("{:<34} {:>7} {:>9} {:>12} {:>10}\n", "variant", "cells", "samples", "tokens", "estimate");
  for (const SessionVariant& variant : session.variants()) {
    const SessionModel& model = *session.models()[variant.model];
    const eval::WorkList work = eval::make_work_list(variant.plan);
    const std::vector<std::int64_t> recomputed = session.recomputed_lengths(variant);
    const bool graded = session.config().sweep.graded;
    std::map<std::int64_t, std::int64_t> tokens_by_length;
    for (const eval::PlannedBatch& batch : work.batches) {
      const bool again = std::binary_search(recomputed.begin(), recomputed.end(), batch.sample_tokens);
      const std::int64_t n_passes = again ? passes_per_sample(variant.plan, batch.samples.front(), graded) : 1;
      tokens_by_length[batch.sample_tokens] +=
          n_passes * batch.sample_tokens * static_cast<std::int64_t>(batch.samples.size());
    }
    double seconds = 0;
    for (const auto& [length, n_tokens] : tokens_by_length)
      seconds += clock.seconds(model, variant.settings.dtype, n_tokens, length);
    fmt::print("{:<34} {:>7} {:>9} {:>12} {:>10}\n", variant.settings.name, work.n_cells, work.n_samples,
               format_count(static_cast<double>(work.prompt_tokens)), format_duration(seconds));
    if (!recomputed.empty()) fmt::print("  at most: {}\n", recomputation_note(recomputed));
    for (const eval::RefusedLength& refused : work.refused) fmt::print("  not built: {}\n", refused.reason);
    sweep_seconds += seconds;
    cells += work.n_cells;
    samples += work.n_samples;
    tokens += work.prompt_tokens;
  }
  for (const auto& model : session.models()) {
    if (model->train_spec && !std::filesystem::exists(model->path + "/config.json")) {
      train_seconds += 60;
      fmt::print("to train: {} (recipe {}, context {}, seed {}), about a minute\n", model->name,
                 model->train_spec->recipe, model->train_spec->context, model->train_spec->seed);
    }
  }
  fmt::print(
      "in all: {} cells, {} samples, {} tokens, about {} of sweep and {} of training; smallest feasible "
      "lengths:",
      cells, samples, format_count(static_cast<double>(tokens)), format_duration(sweep_seconds),
      format_duration(train_seconds));
  const eval::SweepPlan& plan = session.variants().front().plan;
  for (const eval::PlannedTask& task : plan.tasks) {
    fmt::print(" {} {}", task.name.name, task.task->smallest_length_tokens(plan.seed));
  }
  fmt::print("\n");
}

}  // namespace fathom::cli
