#include <fmt/format.h>

#include <algorithm>

#include "harness/analysis/kept_summary.h"
#include "harness/cli/command_entries.h"
#include "harness/config/parse.h"
#include "harness/core/error.h"
#include "harness/store/retention.h"

namespace fathom::cli {
namespace {

int run_prune(const Arguments& arguments) {
  const auto db = arguments.get("db");
  const auto days = arguments.integer("older-than", 0, 1'000'000);
  if (!db || !days) {
    throw ConfigError(fmt::format("prune: --{} is missing; for example: fathom prune --db nightly.db --older-than 90",
                                  db ? "older-than" : "db"));
  }
  store::open_reader(*db);  // a file that is missing or foreign is an error, not a new database
  const std::vector<std::string> kept_whole = arguments.all("keep");
  std::int64_t n_dropped = 0;
  int n_runs = 0;
  for (const std::string& run : store::runs_older_than(*db, *days)) {
    if (std::find(kept_whole.begin(), kept_whole.end(), run) != kept_whole.end()) continue;
    ++n_runs;
    if (arguments.has("dry-run")) {
      fmt::print("would drop the samples of '{}'\n", run);
      continue;
    }
    const eval::RunRecord record = store::open_reader(*db)->run(run).run;
    const auto settings =
        analysis::summary_settings(config::parse_config(record.canonical_config, record.name + ".ini", {}).report);
    const std::int64_t n = analysis::prune_run(*db, run, settings);
    n_dropped += n;
    fmt::print("'{}': {} samples dropped, its summary kept\n", run, n);
  }
  if (n_runs == 0) fmt::print("no finished run with samples is older than {} days\n", *days);
  if (n_dropped > 0) store::compact(*db);
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace

CommandEntry entries::prune_entry() {
  return {
      "prune",
      "retention: old runs keep their summary and lose their samples",
      "Drops prompts, replies and scores of finished runs that started more than DAYS days ago, and gives the space\n"
      "back. Their effective context and scores by length stay, for 'report' and 'report --history'; depth cells and\n"
      "misses go, and 'compare' can no longer read them.",
      {"fathom prune --db nightly.db --older-than 90", "fathom prune --db nightly.db --older-than 30 --keep release-1",
       "fathom prune --db nightly.db --older-than 90 --dry-run"},
      {},
      {{"db", "FILE", "results database", {}},
       {"older-than", "DAYS", "runs that started more days ago than this", {}},
       {"keep",
        "RUN",
        "a run that keeps its samples whatever its age; may be repeated",
        {},
        OptionSpec::Count::kRepeated},
       {"dry-run", "", "say what would be dropped; change nothing", {}}},
      run_prune};
}

}  // namespace fathom::cli
