#pragma once
// Reads small CSV files of the source tree: comment lines with '#', a header, no quotes.

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "harness/core/text_util.h"
#include "tests/support/catch.h"

namespace fathom::test {

using CsvRow = std::map<std::string, std::string>;

/// A published table that ships with the product. Read here without its reader, which is under test elsewhere.
inline std::vector<CsvRow> read_published_csv(const std::string& name) {
  std::ifstream in(std::string(FATHOM_TEST_DIR) + "/../harness/import/data/" + name);
  INFO("published table " << name);
  REQUIRE(in.good());
  std::vector<std::string> header;
  std::vector<CsvRow> rows;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.front() == '#') continue;
    const std::vector<std::string> fields = split(line, ',');
    if (header.empty()) {
      header = fields;
      continue;
    }
    REQUIRE(fields.size() == header.size());
    CsvRow row;
    for (std::size_t i = 0; i < fields.size(); ++i) row[header[i]] = fields[i];
    rows.push_back(row);
  }
  return rows;
}

}  // namespace fathom::test
