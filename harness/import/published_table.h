#pragma once
// Published results as CSV: a row a model, a column `s<length>` for the score at each length.

#include <cstdint>
#include <optional>
#include <string_view>

#include "harness/import/csv_table.h"
#include "harness/import/import_format.h"

namespace fathom::import {

struct PublishedTable {
  std::string_view name;                                                ///< for people: "RULER (published)"
  std::string_view format;                                              ///< of ImportEntry
  std::optional<std::int64_t> (*length_tokens)(std::string_view text);  ///< what stands after the `s` of a column
  /// Sets what the source judges a row by, and columns that it alone has.
  void (*read_rule)(const CsvTable& table, const CsvRow& row, store::ImportedRow& out);
};

/// \throws DataError  with file and line for what cannot be read.
store::ImportedSource read_published_table(const ImportRequest& request, const PublishedTable& published);

}  // namespace fathom::import
