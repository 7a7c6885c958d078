// A comparison as workflow commands that a GitHub-style runner turns into annotations.

#include <fmt/format.h>

#include <ostream>

#include "harness/core/text_util.h"
#include "reports/comparison/form.h"
#include "reports/comparison/wording.h"
#include "reports/format.h"

namespace fathom::reports {
namespace {

using analysis::Comparison;
using analysis::GateUnit;
using analysis::Verdict;

/// A runner shows ten annotations of a kind a step.
constexpr std::size_t kMaxAnnotations = 10;

std::string annotation_text(const std::string& text) {
  return replace_all(visible_text(text), "%", "%25");
}

std::string annotation_property(const std::string& text) {
  return replace_all(replace_all(annotation_text(text), ":", "%3A"), ",", "%2C");
}

void annotate(const char* level, const std::string& title, const std::string& text, std::ostream& out) {
  out << fmt::format("::{} title={}::{}\n", level, annotation_property(title), annotation_text(text));
}

std::string worst_example(const Comparison& comparison) {
  for (const analysis::CellChange& cell : comparison.worst_cells) {
    if (cell.examples.empty()) continue;
    const analysis::MissExample& example = cell.examples.front();
    return fmt::format("{}: {}: {:.0f} -> {:.0f} of 100; …{} | expected {} | got {}", comparison.pairs[cell.pair].name,
                       cell_title(cell), 100 * cell.baseline, 100 * cell.candidate, example.prompt_tail,
                       example.expected, example.candidate_reply);
  }
  return "";
}

void annotate_units(const char* level, const Comparison& comparison, Verdict verdict, std::ostream& out) {
  const std::vector<const GateUnit*> units = units_of(comparison, verdict);
  for (std::size_t i = 0; i < units.size() && i + 1 < kMaxAnnotations; ++i) {
    const GateUnit& unit = *units[i];
    annotate(level, "fathom: " + comparison.pairs[unit.pair].name + ": " + unit_title(unit),
             unit_change(unit) + "; " + unit_p(unit), out);
  }
}

void write_comparison_github(const Comparison& comparison, std::ostream& out) {
  const bool passed = comparison.exit_code() == ExitCode::kOk;
  annotate(passed ? "notice" : "error", "fathom compare", comparison_headline(comparison), out);
  annotate_units("error", comparison, Verdict::kRegression, out);
  annotate_units("warning", comparison, Verdict::kWarning, out);
  const std::string example = worst_example(comparison);
  if (!example.empty()) annotate("notice", "fathom: largest drop of a cell", example, out);
}

}  // namespace

ComparisonFormEntry comparison_entries::github_entry() {
  return {"github", "workflow commands (::error, ::warning) for GitHub-style runners", &write_comparison_github};
}

}  // namespace fathom::reports
