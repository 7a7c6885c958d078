#pragma once
// CSV with a header line, comment lines in front ('#'), quoted fields and either line end.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::import {

struct CsvRow {
  std::int64_t line = 0;  ///< in the file, from 1
  std::vector<std::string> fields;
};

/// \param where  the file, for messages.
class CsvTable {
 public:
  /// \throws DataError with file and line: no header, another number of fields than the header has, an open quote.
  CsvTable(std::string_view text, std::string where);

  const std::vector<std::string>& header() const { return header_; }
  const std::vector<CsvRow>& rows() const { return rows_; }
  const std::vector<std::string>& comments() const { return comments_; }  ///< without '#'

  /// \throws DataError if there is no such column.
  const std::string& text(const CsvRow& row, std::string_view column) const;
  /// Nothing for an empty field. \throws DataError for a field that is no number.
  std::optional<double> number(const CsvRow& row, std::string_view column) const;
  /// \throws DataError with file and line.
  [[noreturn]] void fail(const CsvRow& row, const std::string& what) const;

 private:
  std::string where_;
  std::vector<std::string> header_;
  std::vector<CsvRow> rows_;
  std::vector<std::string> comments_;
};

/// "128K", "1M" (of 1024 K) or plain tokens; nothing for anything else. K = 1024.
std::optional<std::int64_t> parse_token_count(std::string_view text);

}  // namespace fathom::import
