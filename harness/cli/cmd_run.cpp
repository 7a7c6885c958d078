#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <vector>

#include "harness/cli/command_entries.h"
#include "harness/cli/console.h"
#include "harness/cli/dry_run.h"
#include "harness/cli/report_output.h"
#include "harness/cli/run_record.h"
#include "harness/cli/run_session.h"
#include "harness/config/parse.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/store/result_store.h"

namespace fathom::cli {
namespace {

struct RunTotals {
  std::int64_t done = 0;
  std::int64_t skipped = 0;
  std::int64_t failed = 0;
  std::int64_t total() const { return done + skipped; }
};

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
  const std::vector<std::int64_t> recomputed = session.recomputed_lengths(variant);
  if (!recomputed.empty()) line.finish("note: " + recomputation_note(recomputed));
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
  if (arguments.has("dry-run")) {
    dry_run(session);
    return static_cast<int>(ExitCode::kOk);
  }
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
