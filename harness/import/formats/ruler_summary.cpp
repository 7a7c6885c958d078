// summary.csv of RULER's scorer: three rows (Tasks, Score, Nulls), a column a task. The file names neither model nor
// length; RULER keeps it at MODEL/BENCHMARK/LENGTH/pred/summary.csv.

#include <fmt/format.h>

#include <string_view>

#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/core/text_util.h"
#include "harness/import/csv_table.h"
#include "harness/import/import_format.h"

namespace fathom::import {
namespace {

/// Number of samples in "nulls/samples".
std::optional<std::int64_t> samples_of(const std::string& nulls) {
  const auto slash = nulls.find('/');
  return slash == std::string::npos ? std::nullopt : parse_int(std::string_view(nulls).substr(slash + 1));
}

const CsvRow& named_row(const CsvTable& table, std::string_view name, const std::string& path) {
  for (const CsvRow& row : table.rows()) {
    if (row.fields.front() == name) return row;
  }
  throw DataError(fmt::format("{}: no row '{}'; RULER's summary.csv has Tasks, Score and Nulls", path, name));
}

/// What the folders say: MODEL and LENGTH of …/MODEL/BENCHMARK/LENGTH/pred/summary.csv.
void take_from_path(const std::string& path, std::optional<std::string>& model,
                    std::optional<std::int64_t>& length_tokens) {
  const std::vector<std::string> parts = split(path, '/');
  if (parts.size() < 3 || parts[parts.size() - 2] != "pred") return;
  if (!length_tokens) length_tokens = parse_int(parts[parts.size() - 3]);
  if (!model && parts.size() >= 5) model = parts[parts.size() - 5];
}

store::ImportedSource read_ruler_summary(const ImportRequest& request) {
  std::optional<std::string> model = request.model;
  std::optional<std::int64_t> length = request.length_tokens;
  take_from_path(request.path, model, length);
  if (!model || model->empty()) {
    throw ConfigError(fmt::format("import: {} does not name its model; add --model NAME", request.path));
  }
  if (!length || *length < 1) {
    throw ConfigError(fmt::format("import: {} does not state its length; add --length TOKENS", request.path));
  }
  const CsvTable table(request.text, request.path);
  const CsvRow& tasks = named_row(table, "Tasks", request.path);
  const CsvRow& scores = named_row(table, "Score", request.path);
  const CsvRow& nulls = named_row(table, "Nulls", request.path);
  store::ImportedRow row;
  row.model = *model;
  row.provenance = fmt::format("{} ({})", request.path, hash_hex(request.text));
  for (std::size_t i = 1; i < tasks.fields.size(); ++i) {
    if (tasks.fields[i].empty()) continue;
    const auto score = parse_double(scores.fields[i]);
    if (!score || *score < 0 || *score > 100) {
      table.fail(scores, fmt::format("{}: '{}' is no score in percent", tasks.fields[i], scores.fields[i]));
    }
    row.scores.push_back({tasks.fields[i], *length, *score, samples_of(nulls.fields[i])});
  }
  if (row.scores.empty()) throw DataError(fmt::format("{}: no scores", request.path));
  store::ImportedSource source;
  source.name = "RULER summary.csv";
  source.format = "ruler-summary";
  source.provenance = "scores of RULER's own scorer, in its own wording and placement";
  source.rows.push_back(std::move(row));
  return source;
}

}  // namespace

ImportEntry entries::ruler_summary_entry() {
  return {"ruler-summary",
          "summary.csv of RULER's scorer, one length a file (--model, --length unless the path says so)", "",
          &read_ruler_summary};
}

}  // namespace fathom::import
