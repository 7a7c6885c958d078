// NoLiMa's published table: score by length, and a threshold of 0.85 times the score at short lengths.

#include "harness/core/text_util.h"
#include "harness/import/published_table.h"

namespace fathom::import {
namespace {

void read_nolima_rule(const CsvTable& table, const CsvRow& row, store::ImportedRow& out) {
  const auto threshold = table.number(row, "threshold");
  if (!threshold) table.fail(row, "threshold is missing");
  out.threshold_percent = *threshold;
  out.strict = false;
  out.base_percent = table.number(row, "base");
}

store::ImportedSource read_nolima_published(const ImportRequest& request) {
  return read_published_table(request,
                              {"NoLiMa (published)", "nolima-published", &parse_token_count, &read_nolima_rule});
}

}  // namespace

ImportEntry entries::nolima_published_entry() {
  return {"nolima-published", "the results table of NoLiMa's README; without FILE the copy that ships",
          "nolima_published.csv", &read_nolima_published};
}

}  // namespace fathom::import
