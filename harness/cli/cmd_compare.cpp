#include <fmt/format.h>

#include <iostream>
#include <sstream>

#include "harness/analysis/comparison.h"
#include "harness/analysis/run_summary.h"
#include "harness/cli/command_entries.h"
#include "harness/cli/console.h"
#include "harness/config/parse.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/store/result_reader.h"
#include "reports/comparison/form.h"

namespace fathom::cli {
namespace {

/// The run asked for, else the `back`-th newest of the database.
std::string chosen_run(const Arguments& arguments, const char* option, const store::ResultReader& results,
                       const std::string& database, std::size_t back) {
  if (const auto run = arguments.get(option)) return *run;
  const std::vector<std::string> names = results.run_names();
  if (names.size() <= back) {
    throw ConfigError(
        fmt::format("compare: {} holds {} run{}; name the {} with --{} RUN, or its database with --db and "
                    "--candidate-db",
                    database, names.size(), names.size() == 1 ? "" : "s", option, option));
  }
  return names[names.size() - 1 - back];
}

double number_option(const Arguments& arguments, const char* option, double low, double high, double fallback) {
  const auto text = arguments.get(option);
  if (!text) return fallback;
  const auto value = parse_double(*text);
  if (!value || *value < low || *value > high) {
    throw ConfigError(fmt::format("compare: --{} {} is not a number in {}..{}", option, *text, low, high));
  }
  return *value;
}

analysis::GateSettings gate_settings(const Arguments& arguments, const eval::RunRecord& baseline) {
  analysis::GateSettings settings;
  settings.tolerance_points = number_option(arguments, "tolerance", 0, 100, settings.tolerance_points);
  settings.alpha = number_option(arguments, "alpha", 0, 1, settings.alpha);
  settings.min_samples = arguments.integer("min-samples", 1, 1'000'000'000).value_or(settings.min_samples);
  const auto report =
      analysis::summary_settings(config::parse_config(baseline.canonical_config, baseline.name + ".ini", {}).report);
  settings.absolute_threshold = report.absolute_threshold;
  settings.base_lengths = report.base_lengths;
  return settings;
}

int run_compare(const Arguments& arguments) {
  const auto db = arguments.get("db");
  if (!db) {
    throw ConfigError(
        "compare: --db FILE is missing; for example: fathom compare --db nightly.db --baseline monday --candidate "
        "tuesday");
  }
  const auto other_db = arguments.get("candidate-db");
  const auto baseline_results = store::open_reader(*db);
  const auto other_results = other_db ? store::open_reader(*other_db) : nullptr;
  const store::ResultReader& candidate_results = other_results ? *other_results : *baseline_results;
  const std::string candidate_database = other_db.value_or(*db);
  const std::string candidate = chosen_run(arguments, "candidate", candidate_results, candidate_database, 0);
  const std::string baseline = chosen_run(arguments, "baseline", *baseline_results, *db, other_db ? 0 : 1);
  if (!other_db && candidate == baseline) {
    throw ConfigError(fmt::format("compare: '{}' is both baseline and candidate; name two runs", baseline));
  }
  const analysis::Comparison comparison =
      analysis::compare_runs({*baseline_results, candidate_results, baseline, candidate, *db, candidate_database,
                              gate_settings(arguments, baseline_results->run(baseline).run), arguments.all("scorer")});
  const auto& form = reports::comparison_forms().at(arguments.get_or("format", "text"));
  if (const auto out = arguments.get("out")) {
    std::ostringstream text;
    form.write(comparison, text);
    write_text_file(*out, text.str());
    fmt::print("{}\n", *out);
  } else {
    form.write(comparison, std::cout);
    std::cout.flush();
  }
  return static_cast<int>(comparison.exit_code());
}

}  // namespace

CommandEntry entries::compare_entry() {
  return {
      "compare",
      "the regression gate: exit code 4 if a candidate run is worse than a baseline run",
      "Compares two runs on the samples that both answered, with paired tests corrected for their number. A task at\n"
      "a length, a mean over tasks or the effective context that fell significantly and by more than the tolerance\n"
      "is a regression. Exit codes: 0 none, 4 regression, 5 too little in common, 2 not comparable (another seed,\n"
      "task version, tokenizer or prompt). 5 goes before 4: an incomplete comparison is no pass.",
      {"fathom compare --db nightly.db --baseline monday --candidate tuesday",
       "fathom compare --db main.db --candidate-db branch.db --format junit --out compare.xml",
       "fathom compare --db nightly.db --tolerance 5 --alpha 0.01 --scorer lp"},
      {},
      {{"db", "FILE", "results database of the baseline, and of the candidate unless --candidate-db is given", {}},
       {"candidate-db", "FILE", "results database of the candidate", {}},
       {"baseline", "RUN", "run to compare with (default: the last but one; with --candidate-db the newest)", {}},
       {"candidate", "RUN", "run to judge (default: the newest)", {}},
       {"tolerance", "POINTS", "a mean must drop by more than this to be a regression (default 2)", {}},
       {"alpha", "P", "and its p, adjusted for all tests, must be below this (default 0.05)", {}},
       {"min-samples", "N", "samples in common that each task and length needs (default 20)", {}},
       {"scorer",
        "NAME",
        "also show the differences of this scorer; may be repeated",
        {},
        OptionSpec::Count::kRepeated},
       {"format", "NAME", "text (default), json, junit or github", reports::comparison_forms().names()},
       {"out", "FILE", "write there instead of to standard output", {}}},
      run_compare};
}

}  // namespace fathom::cli
