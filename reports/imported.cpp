#include "reports/imported.h"

#include <fmt/format.h>

#include "harness/core/text_util.h"
#include "reports/format.h"

namespace fathom::reports {
namespace {

using analysis::ImportedResult;
using analysis::ListedAgreement;

/// Published scores keep the digits they were printed with.
std::string percent_text(const std::optional<double>& percent) {
  return percent ? fmt::format("{:.1f}", *percent) : std::string(kNothing);
}

std::string agreement_text(ListedAgreement agreement, const Labels& l) {
  switch (agreement) {
    case ListedAgreement::kContradicts:
      return l("imported_contradicts");
    case ListedAgreement::kBoundary:
      return l("imported_boundary");
    case ListedAgreement::kAgrees:
      return l("imported_agrees");
    case ListedAgreement::kNothingListed:
      break;
  }
  return std::string(kNothing);
}

const analysis::LengthPoint* point_at(const ImportedResult& result, std::int64_t length_tokens) {
  for (const analysis::LengthPoint& point : result.curve) {
    if (point.length_tokens == length_tokens) return &point;
  }
  return nullptr;
}

std::string remark_of(const store::ImportedRow& row, const Labels& l) {
  std::vector<std::string> remarks;
  if (row.self_reported) remarks.push_back(l("imported_self_reported"));
  if (!row.note.empty()) remarks.push_back(visible_text(row.note));
  return join(remarks, "; ");
}

Table imported_table(const analysis::ImportedSummary& summary, const Labels& l) {
  Table table;
  table.caption = visible_text(summary.source.name);
  table.columns = {
      {l("imported_model"), Align::kLeft}, {l("claimed")},           {l("imported_listed")}, {l("imported_by_rule")},
      {l("imported_check"), Align::kLeft}, {l("imported_threshold")}};
  for (const std::int64_t length : summary.lengths) table.columns.push_back({format_tokens_short(length)});
  table.columns.push_back({l("average")});
  table.columns.push_back({l("weighted_increasing")});
  table.columns.push_back({l("weighted_decreasing")});
  table.columns.push_back({l("imported_remark"), Align::kLeft});
  for (const ImportedResult& result : summary.results) {
    const store::ImportedRow& row = result.row;
    std::vector<Cell> cells = {
        {visible_text(row.model)},
        row.claimed_tokens ? Cell{format_tokens_short(*row.claimed_tokens)} : Cell{std::string(kNothing)},
        {row.listed_effective.empty() ? std::string(kNothing) : visible_text(row.listed_effective)},
        {format_effective_text(result.effective)},
        {agreement_text(result.agreement, l)},
        {fmt::format("{} {}", row.strict ? ">" : "≥", format_double(row.threshold_percent))}};
    for (const std::int64_t length : summary.lengths) {
      const analysis::LengthPoint* point = point_at(result, length);
      cells.push_back({percent_text(point == nullptr ? std::nullopt : point->score)});
    }
    const auto& means = result.means;
    cells.push_back({percent_text(means ? std::optional<double>(means->average) : std::nullopt)});
    cells.push_back({percent_text(means ? std::optional<double>(means->increasing) : std::nullopt)});
    cells.push_back({percent_text(means ? std::optional<double>(means->decreasing) : std::nullopt)});
    cells.push_back({remark_of(row, l)});
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::vector<std::string> imported_notes(const analysis::ImportedSummary& summary, const Labels& l) {
  std::vector<std::string> notes;
  std::vector<std::string> contradicted;
  for (const ImportedResult& result : summary.results) {
    if (result.agreement == ListedAgreement::kContradicts) contradicted.push_back(visible_text(result.row.model));
  }
  if (!contradicted.empty()) {
    notes.push_back(fmt::format("{} ({}): {}", l("note_contradicts"), contradicted.size(), join(contradicted, ", ")));
  }
  for (const std::string& line : split(summary.source.provenance, '\n')) {
    if (!line.empty()) notes.push_back(visible_text(line));
  }
  std::vector<std::string> files;
  for (const ImportedResult& result : summary.results) {
    const std::string file = visible_text(result.row.provenance);
    if (!file.empty() && (files.empty() || files.back() != file)) files.push_back(file);
  }
  for (const std::string& file : files) notes.push_back(fmt::format("{}: {}", l("imported_file"), file));
  return notes;
}

}  // namespace

std::vector<ImportedSection> imported_sections(const store::ResultReader& results, const Labels& labels) {
  std::vector<ImportedSection> sections;
  for (const store::ImportedSource& source : results.imports()) {
    ImportedSection section;
    section.summary = analysis::summarise_import(source);
    section.table = imported_table(section.summary, labels);
    section.notes = imported_notes(section.summary, labels);
    sections.push_back(std::move(section));
  }
  return sections;
}

}  // namespace fathom::reports
