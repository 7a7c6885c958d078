#include <fmt/format.h>

#include <algorithm>

#include "harness/analysis/kept_summary.h"
#include "harness/cli/command_entries.h"
#include "harness/config/parse.h"
#include "harness/core/error.h"
#include "harness/store/retention.h"

namespace fathom::cli {
namespace {

void drop_texts(const std::string& db) {
  const std::int64_t n = store::drop_texts(db);
  fmt::print("{} prompts and what was replied dropped, every score kept\n", n);
  if (n > 0) store::compact(db);
}

int run_prune(const Arguments& arguments) {
  const auto db = arguments.get("db");
  if (db && arguments.has("texts")) {
    for (const char* other : {"older-than", "keep", "dry-run"}) {
      if (arguments.has(other))
        throw ConfigError(fmt::format("prune: --texts is for the whole database; leave --{} out", other));
    }
    store::open_reader(*db);
    drop_texts(*db);
    return static_cast<int>(ExitCode::kOk);
  }
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
      "misses go, and 'compare' can no longer read them.\n"
      "With --texts every run keeps its samples and scores, and only the words of prompts and replies go: a small "
      "file\n"
      "to pass on, without the text of the haystack, from which reports are drawn and a stopped run goes on.",
      {"fathom prune --db nightly.db --older-than 90", "fathom prune --db nightly.db --older-than 30 --keep release-1",
       "fathom prune --db nightly.db --older-than 90 --dry-run", "fathom prune --db study.db --texts"},
      {},
      {{"db", "FILE", "results database", {}},
       {"older-than", "DAYS", "runs that started more days ago than this", {}},
       {"keep",
        "RUN",
        "a run that keeps its samples whatever its age; may be repeated",
        {},
        OptionSpec::Count::kRepeated},
       {"texts", "", "drop the words of prompts and replies only, of all runs", {}},
       {"dry-run", "", "say what would be dropped; change nothing", {}}},
      run_prune};
}

}  // namespace fathom::cli
