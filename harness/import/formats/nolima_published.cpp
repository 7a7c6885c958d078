// NoLiMa's published table: score by length, and a threshold of 0.85 times the score at short lengths.

#include <fmt/format.h>

#include "harness/core/hash.h"
#include "harness/core/text_util.h"
#include "harness/import/csv_table.h"
#include "harness/import/import_format.h"

namespace fathom::import {
namespace {

store::ImportedSource read_nolima_published(const ImportRequest& request) {
  const CsvTable table(request.text, request.path);
  store::ImportedSource source;
  source.name = "NoLiMa (published)";
  source.format = "nolima-published";
  source.provenance = join(table.comments(), "\n");
  for (const CsvRow& row : table.rows()) {
    store::ImportedRow out;
    out.model = table.text(row, "model");
    if (out.model.empty()) table.fail(row, "the model has no name");
    out.claimed_tokens = parse_token_count(table.text(row, "claimed"));
    out.listed_effective = table.text(row, "effective_listed");
    const auto threshold = table.number(row, "threshold");
    if (!threshold) table.fail(row, "threshold is missing");
    out.threshold_percent = *threshold;
    out.strict = false;
    out.base_percent = table.number(row, "base");
    out.self_reported = table.text(row, "self_reported") == "1";
    out.provenance = fmt::format("{} ({})", request.path, hash_hex(request.text));
    for (const std::string& column : table.header()) {
      if (column.size() < 2 || column.front() != 's') continue;
      const auto length = parse_token_count(std::string_view(column).substr(1));
      if (!length) continue;
      if (const auto score = table.number(row, column)) out.scores.push_back({"", *length, *score, std::nullopt});
    }
    source.rows.push_back(std::move(out));
  }
  return source;
}

}  // namespace

ImportEntry entries::nolima_published_entry() {
  return {"nolima-published", "the results table of NoLiMa's README; without FILE the copy that ships",
          "nolima_published.csv", &read_nolima_published};
}

}  // namespace fathom::import
