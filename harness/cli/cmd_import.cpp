#include <fmt/format.h>

#include "harness/cli/command_entries.h"
#include "harness/cli/console.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/import/import_format.h"
#include "harness/store/imported.h"

namespace fathom::cli {
namespace {

int run_import(const Arguments& arguments) {
  const auto db = arguments.get("db");
  if (!db) throw ConfigError("import: --db FILE is missing; for example: fathom import ruler-published --db mine.db");
  const import::ImportEntry& format = import::formats().at(replace_all(*arguments.get("FORMAT"), "_", "-"));
  const auto path = arguments.get("FILE");
  if (!path && format.built_in.empty()) {
    throw ConfigError(fmt::format("import: {} needs a FILE; only the published tables ship with Fathom", format.name));
  }
  const std::string text = path ? read_text_file(*path) : std::string(import::built_in_table(format.built_in));
  import::ImportRequest request;
  request.path = path.value_or(fmt::format("built in: {}", format.built_in));
  request.text = text;
  request.model = arguments.get("model");
  constexpr std::int64_t kLongest = std::int64_t{1} << 32;
  request.length_tokens = arguments.integer("length", 1, kLongest);
  store::ImportedSource source = format.read(request);
  if (const auto name = arguments.get("name")) source.name = *name;
  store::put_import(*db, source);
  std::size_t n_scores = 0;
  for (const store::ImportedRow& row : source.rows) n_scores += row.scores.size();
  fmt::print("{}: {} {}, {} scores in {}\n", source.name, source.rows.size(),
             source.rows.size() == 1 ? "model" : "models", n_scores, *db);
  return static_cast<int>(ExitCode::kOk);
}

std::string import_details() {
  std::string text =
      "Stores scores of other tools with their provenance; reports show them beside the database's own runs, with the "
      "effective\nlength by the source's rule and a flag where it contradicts the listed one. Importing twice changes "
      "nothing. Formats:\n";
  for (const import::ImportEntry& format : import::formats().entries()) {
    text += fmt::format("  {:<18} {}\n", format.name, format.summary);
  }
  text.pop_back();
  return text;
}

}  // namespace

CommandEntry entries::import_entry() {
  static const std::string details = import_details();
  return {"import",
          "results of other tools, shown beside our own",
          details,
          {"fathom import ruler-published --db mine.db", "fathom import lm-eval results.json --db mine.db",
           "fathom import ruler-summary summary.csv --model mine --length 4096 --db mine.db"},
          {{"FORMAT", "one of the formats above"},
           {"FILE", "the file; the published tables ship with Fathom", PositionalSpec::Need::kOptional}},
          {{"db", "FILE", "results database", {}},
           {"model", "NAME", "model, where the file does not name it", {}},
           {"length", "TOKENS", "length, where the file does not state it", {}},
           {"name", "TEXT", "name of the source in reports (default: the format's)", {}}},
          run_import};
}

}  // namespace fathom::cli
