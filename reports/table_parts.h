#pragma once
// Cells and columns that many tables have.

#include <cstdint>
#include <set>
#include <string>

#include "reports/tables.h"

namespace fathom::reports {

/// "2048", with "2K" as its detail.
Cell tokens_cell(std::int64_t tokens);
/// "2048", "<128", with the K form as its detail.
Cell effective_cell(const analysis::EffectiveValue& value);
/// The point of a length, or nothing.
const analysis::ScorePoint* point_at(const std::vector<analysis::ScorePoint>& curve, std::int64_t length_tokens);
Column left_column(const std::string& heading);
Column right_column(const std::string& heading);
/// A right column for every number of tokens: "512", "2K".
void add_token_columns(const std::set<std::int64_t>& tokens, Table& table);
/// Name of a variant of the run, label of a task, as text that can be shown. \param variant, task  index
std::string shown_variant(const TableSource& source, std::int32_t variant);
std::string shown_task(const TableSource& source, std::int32_t task);

}  // namespace fathom::reports
