// RULER's published table: the mean of the 13 tasks by length, and the effective length that the authors list.

#include <fmt/format.h>

#include "harness/core/hash.h"
#include "harness/core/text_util.h"
#include "harness/import/csv_table.h"
#include "harness/import/import_format.h"

namespace fathom::import {
namespace {

/// Llama-2-7B chat at 4K (Hsieh et al. 2024, section 4).
constexpr double kRulerThreshold = 85.6;

store::ImportedSource read_ruler_published(const ImportRequest& request) {
  const CsvTable table(request.text, request.path);
  store::ImportedSource source;
  source.name = "RULER (published)";
  source.format = "ruler-published";
  source.provenance = join(table.comments(), "\n");
  for (const CsvRow& row : table.rows()) {
    store::ImportedRow out;
    out.model = table.text(row, "model");
    if (out.model.empty()) table.fail(row, "the model has no name");
    out.claimed_tokens = parse_token_count(table.text(row, "claimed"));
    out.listed_effective = table.text(row, "effective_listed");
    out.threshold_percent = kRulerThreshold;
    out.strict = true;
    out.self_reported = table.text(row, "self_reported") == "1";
    out.note = table.text(row, "note");
    if (table.text(row, "role") == "threshold")
      out.note = join({"sets the threshold", out.note}, out.note.empty() ? "" : "; ");
    out.provenance = fmt::format("{} ({})", request.path, hash_hex(request.text));
    for (const std::string& column : table.header()) {
      if (column.size() < 2 || column.front() != 's') continue;
      const auto length = parse_int(std::string_view(column).substr(1));
      if (!length) continue;
      if (const auto score = table.number(row, column)) out.scores.push_back({"", *length, *score, std::nullopt});
    }
    source.rows.push_back(std::move(out));
  }
  return source;
}

}  // namespace

ImportEntry entries::ruler_published_entry() {
  return {"ruler-published", "the results table of RULER's README; without FILE the copy that ships",
          "ruler_published.csv", &read_ruler_published};
}

}  // namespace fathom::import
