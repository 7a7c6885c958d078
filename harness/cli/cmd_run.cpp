#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>

#include "harness/checkpoint/prefill_cost.h"
#include "harness/cli/command_entries.h"
#include "harness/cli/console.h"
#include "harness/cli/report_output.h"
#include "harness/cli/run_record.h"
#include "harness/cli/run_session.h"
#include "harness/config/parse.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/engine/diagnostics.h"
#include "harness/store/result_store.h"

namespace fathom::cli {
namespace {

struct RunTotals {
  std::int64_t done = 0;
  std::int64_t skipped = 0;
  std::int64_t failed = 0;
  std::int64_t total() const { return done + skipped; }
};

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

int dry_run(RunSession& session) {
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
    std::map<std::int64_t, std::int64_t> tokens_by_length;
    for (const eval::PlannedBatch& batch : work.batches)
      tokens_by_length[batch.sample_tokens] += batch.sample_tokens * static_cast<std::int64_t>(batch.samples.size());
    double seconds = 0;
    for (const auto& [length, n_tokens] : tokens_by_length)
      seconds += clock.seconds(model, variant.settings.dtype, n_tokens, length);
    fmt::print("{:<34} {:>7} {:>9} {:>12} {:>10}\n", variant.settings.name, work.n_cells, work.n_samples,
               format_count(static_cast<double>(work.prompt_tokens)), format_duration(seconds));
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
  return static_cast<int>(ExitCode::kOk);
}

std::string progress_text(const std::string& variant, const eval::EvalProgress& p, double seconds_per_token) {
  const double eta = p.remaining_tokens_weight * seconds_per_token;
  return fmt::format("{}  {}/{} samples  {}  {} tok/s{}{}", variant, p.samples_done, p.samples_total, p.cell,
                     format_count(p.busy_seconds > 0 ? static_cast<double>(p.tokens_done) / p.busy_seconds : 0),
                     p.tokens_done > 0 ? fmt::format("  ETA {}", format_duration(eta)) : "",
                     p.samples_failed > 0 ? fmt::format("  {} FAILED", p.samples_failed) : "");
}

void run_variant(RunSession& session, const SessionVariant& variant, eval::ResultSink& sink, ProgressLine& line,
                 RunTotals& totals) {
  SessionModel& model = *session.models()[variant.model];
  session.load(model, variant.settings.dtype, line);
  sink.put_variant(session.variant_record(variant));
  VariantModels models(session, variant);
  eval::EvalOptions options;
  options.variant = variant.settings.name;
  options.graded = session.config().sweep.graded;
  options.stop = session.engine_options().stop;
  options.peak_rss_bytes = peak_rss_bytes;
  options.progress = [&line, &variant](const eval::EvalProgress& p) {
    line.show(progress_text(variant.settings.name, p,
                            p.tokens_done > 0 ? p.busy_seconds / static_cast<double>(p.tokens_done) : 0));
  };
  const eval::EvalSummary summary =
      eval::evaluate(variant.plan, models, *model.assembler, sink.finished_keys(), sink, options);
  totals.done += summary.samples_done;
  totals.skipped += summary.samples_skipped + summary.samples_reused;
  totals.failed += summary.samples_failed;
  line.finish(
      fmt::format("{}: {} samples{}{}{}", variant.settings.name,
                  summary.samples_done + summary.samples_skipped + summary.samples_reused,
                  summary.samples_skipped > 0 ? fmt::format(" ({} were there already)", summary.samples_skipped) : "",
                  summary.samples_reused > 0 ? fmt::format(" ({} taken over)", summary.samples_reused) : "",
                  summary.samples_failed > 0 ? fmt::format(", {} failed", summary.samples_failed) : ""));
}

int finish_run(const config::RunConfig& config, const std::string& db, const RunTotals& totals) {
  const std::string folder = config.report.out == "auto" ? "reports/out/" + config.name : config.report.out;
  print_report({db, {config.name}, "terminal", "en", TimingColumns::kShow});
  const std::string page = write_report({db, {config.name}, "html", "en", TimingColumns::kShow}, folder);
  fmt::print("\npage: {}\n", page);
  const double failed_percent =
      totals.total() == 0 ? 0 : 100.0 * static_cast<double>(totals.failed) / static_cast<double>(totals.total());
  if (failed_percent > config.sweep.max_failed) {
    fmt::print(stderr, "fathom: {} of {} samples failed ({:.1f} %, allowed {} %): see the status column\n",
               totals.failed, totals.total(), failed_percent, config.sweep.max_failed);
    return static_cast<int>(ExitCode::kIncomplete);
  }
  return static_cast<int>(ExitCode::kOk);
}

int run_run(const Arguments& arguments) {
  const config::RunConfig config = config::load_config(*arguments.get("CONFIG"), run_settings(arguments));
  const std::vector<std::string> problems = config::validate(config);
  if (!problems.empty()) throw ConfigError("config: " + join(problems, "\nconfig: "));
  engine::set_threads(config.engine.threads.value_or(0));
  RunSession session(config);
  if (arguments.has("dry-run")) return dry_run(session);
  const std::string db = arguments.get_or("db", config.name + ".db");
  RunTotals totals;
  {
    ProgressLine line(arguments.has("quiet") ? ProgressLine::Mode::kQuiet : ProgressLine::Mode::kNormal);
    store::StoreOptions options;
    options.reuse_run = arguments.get_or("reuse", "");
    const auto sink = store::open_store(db, options);
    sink->begin_run(make_run_record(config, session.content_fingerprint()));
    try {
      for (const SessionVariant& variant : session.variants()) run_variant(session, variant, *sink, line, totals);
    } catch (const Interrupted&) {
      throw Interrupted(fmt::format("interrupted; everything finished is in {}; the same command continues", db));
    }
    sink->end_run();
  }
  return finish_run(config, db, totals);
}

}  // namespace

CommandEntry entries::run_entry() {
  return {
      "run",
      "train or load the models of a config, run its sweep, store every sample, draw the page",
      "Trains or loads each model, runs the sweep and stores every sample. A run that was stopped continues by "
      "itself:\n"
      "finished work is found by content and not done again. To add lengths, tasks or samples to an earlier run, give\n"
      "the new one a name and --reuse: only what is new is asked. Ends with the terminal report and the page's path.",
      {"fathom run configs/quickstart.ini", "fathom run configs/smollm2.ini --set sweep.samples=2 --db try.db",
       "fathom run configs/smollm2.ini --set sweep.samples=20 --set name=more --db smollm2.db --reuse smollm2",
       "fathom run configs/quickstart.ini --dry-run"},
      {{"CONFIG", "INI file; configs/KEYS.md lists every key"}},
      {{"db", "FILE", "results database (default NAME.db)", {}},
       {"reuse", "RUN", "take over what this run of the same database has answered", {}},
       {"set", "KEY=VALUE", "override a key; may be repeated", {}, OptionSpec::Count::kRepeated},
       {"preset", "NAME", "samples per cell: smoke 10, nightly 50, full 500", {"smoke", "nightly", "full"}},
       {"prompts", "FILE", "prompt pack with your own wording", {}},
       {"dry-run", "", "show cells, tokens and the estimated time; do nothing", {}},
       {"device", "NAME", "where to compute", {"cpu", "cuda"}},
       {"dtype", "NAME", "type of weights and KV cache", {"auto", "float32", "bf16"}},
       {"threads", "N", "threads (default: all cores)", {}},
       {"quiet", "", "no progress lines", {}}},
      run_run};
}

}  // namespace fathom::cli
