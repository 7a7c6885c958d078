// RULER's published table: the mean of the 13 tasks by length, and the effective length that the authors list.

#include "harness/core/text_util.h"
#include "harness/import/published_table.h"

namespace fathom::import {
namespace {

/// Llama-2-7B chat at 4K (Hsieh et al. 2024, section 4).
constexpr double kRulerThreshold = 85.6;

void read_ruler_rule(const CsvTable& table, const CsvRow& row, store::ImportedRow& out) {
  out.threshold_percent = kRulerThreshold;
  out.strict = true;
  out.note = table.text(row, "note");
  if (table.text(row, "role") == "threshold")
    out.note = join({"sets the threshold", out.note}, out.note.empty() ? "" : "; ");
}

store::ImportedSource read_ruler_published(const ImportRequest& request) {
  return read_published_table(request, {"RULER (published)", "ruler-published", &parse_int, &read_ruler_rule});
}

}  // namespace

ImportEntry entries::ruler_published_entry() {
  return {"ruler-published", "the results table of RULER's README; without FILE the copy that ships",
          "ruler_published.csv", &read_ruler_published};
}

}  // namespace fathom::import
