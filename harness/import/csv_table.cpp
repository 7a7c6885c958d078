#include "harness/import/csv_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/core/types.h"

namespace fathom::import {
namespace {

/// Fields of one line; nothing if a quote stays open.
std::optional<std::vector<std::string>> csv_fields(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += c;
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  if (quoted) return std::nullopt;
  return fields;
}

}  // namespace

CsvTable::CsvTable(std::string_view text, std::string where) : where_(std::move(where)) {
  std::int64_t number = 0;
  for (const std::string& raw : split(text, '\n')) {
    ++number;
    const std::string_view line = trim(raw);
    if (line.empty()) continue;
    if (line.front() == '#') {
      comments_.emplace_back(trim(line.substr(1)));
      continue;
    }
    auto fields = csv_fields(line);
    if (!fields) throw DataError(fmt::format("{}:{}: a quote is never closed", where_, number));
    if (header_.empty()) {
      header_ = std::move(*fields);
      continue;
    }
    if (fields->size() != header_.size()) {
      throw DataError(
          fmt::format("{}:{}: {} fields, the header has {}", where_, number, fields->size(), header_.size()));
    }
    rows_.push_back({number, std::move(*fields)});
  }
  if (header_.empty()) throw DataError(fmt::format("{}: no header line", where_));
}

const std::string& CsvTable::text(const CsvRow& row, std::string_view column) const {
  const auto found = std::find(header_.begin(), header_.end(), column);
  if (found == header_.end()) {
    throw DataError(fmt::format("{}: no column '{}'; there are: {}", where_, column, join(header_, ", ")));
  }
  return row.fields[static_cast<std::size_t>(found - header_.begin())];
}

std::optional<double> CsvTable::number(const CsvRow& row, std::string_view column) const {
  const std::string& field = text(row, column);
  if (field.empty()) return std::nullopt;
  const auto value = parse_double(field);
  if (!value) fail(row, fmt::format("{} = '{}' is no number", column, field));
  return value;
}

void CsvTable::fail(const CsvRow& row, const std::string& what) const {
  throw DataError(fmt::format("{}:{}: {}", where_, row.line, what));
}

std::optional<std::int64_t> parse_token_count(std::string_view text) {
  std::int64_t unit = 1;
  if (ends_with(text, "K")) unit = kTokensPerK;
  if (ends_with(text, "M")) unit = kTokensPerK * kTokensPerK;
  if (unit > 1) text.remove_suffix(1);
  const auto count = parse_int(text);
  if (!count || *count < 1 || *count > (std::int64_t{1} << 40)) return std::nullopt;
  return *count * unit;
}

}  // namespace fathom::import
