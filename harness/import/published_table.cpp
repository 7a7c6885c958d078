#include "harness/import/published_table.h"

#include <fmt/format.h>

#include "harness/core/hash.h"
#include "harness/core/text_util.h"

namespace fathom::import {

store::ImportedSource read_published_table(const ImportRequest& request, const PublishedTable& published) {
  const CsvTable table(request.text, request.path);
  store::ImportedSource source;
  source.name = published.name;
  source.format = published.format;
  source.provenance = join(table.comments(), "\n");
  const std::string file = fmt::format("{} ({})", request.path, hash_hex(request.text));
  for (const CsvRow& row : table.rows()) {
    store::ImportedRow out;
    out.model = table.text(row, "model");
    if (out.model.empty()) table.fail(row, "the model has no name");
    out.claimed_tokens = parse_token_count(table.text(row, "claimed"));
    out.listed_effective = table.text(row, "effective_listed");
    out.self_reported = table.text(row, "self_reported") == "1";
    out.provenance = file;
    published.read_rule(table, row, out);
    for (const std::string& column : table.header()) {
      if (column.size() < 2 || column.front() != 's') continue;
      const auto length = published.length_tokens(std::string_view(column).substr(1));
      if (!length) continue;
      if (const auto score = table.number(row, column)) out.scores.push_back({"", *length, *score, std::nullopt});
    }
    source.rows.push_back(std::move(out));
  }
  return source;
}

}  // namespace fathom::import
