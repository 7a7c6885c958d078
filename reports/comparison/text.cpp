// A comparison on one screen: the verdict, what fell, where it fell most, what is not shared, what differs.

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "reports/comparison/form.h"
#include "reports/comparison/wording.h"
#include "reports/format.h"

namespace fathom::reports {
namespace {

using analysis::Comparison;
using analysis::GateUnit;
using analysis::Verdict;

/// A screen has some fifty lines; the JSON form has everything.
constexpr std::size_t kMaxUnitLines = 12;
constexpr std::size_t kMaxDifferenceLines = 12;
constexpr std::size_t kMaxUnsharedLines = 8;
constexpr int kReplyColumns = 72;

class ComparisonTextWriter {
 public:
  ComparisonTextWriter(const Comparison& comparison, std::ostream& out) : comparison_(comparison), out_(out) {}

  void write() {
    write_side("baseline ", comparison_.baseline, comparison_.baseline_database);
    write_side("candidate", comparison_.candidate, comparison_.candidate_database);
    line("");
    line(comparison_headline(comparison_));
    for (const std::string& reason : comparison_.incomplete) line("  incomplete: " + visible_text(reason));
    write_units("fell", Verdict::kRegression);
    write_units("dropped, but not both far enough and significantly", Verdict::kWarning);
    write_units("rose", Verdict::kBetter);
    write_overview();
    write_worst_cells();
    write_other_scores();
    write_list("shared samples", unshared_lines(comparison_, kMaxUnsharedLines), shared_line(comparison_));
    write_list("what differs between the runs", differences(),
               comparison_.differences.empty() ? "nothing in config, versions, hardware and variants" : "");
  }

 private:
  void line(const std::string& text) { out_ << text << "\n"; }

  void write_side(const char* role, const store::RunInfo& info, const std::string& database) {
    line(fmt::format("{}  '{}' of {}, {}", role, visible_text(info.run.name), visible_text(database),
                     info.run.started_at));
  }

  std::string place(const GateUnit& unit) const {
    return visible_text(comparison_.pairs[unit.pair].name) + ": " + unit_title(unit);
  }

  void write_unit_lines(const std::vector<const GateUnit*>& units) {
    int width = 0;
    const std::size_t n_shown = std::min(units.size(), kMaxUnitLines);
    for (std::size_t i = 0; i < n_shown; ++i) width = std::max(width, display_width(place(*units[i])));
    for (std::size_t i = 0; i < n_shown; ++i) {
      line(fmt::format("  {}  {}; {}", fit_left(place(*units[i]), width), unit_change(*units[i]), unit_p(*units[i])));
    }
    if (units.size() > n_shown) line(fmt::format("  and {} more", units.size() - n_shown));
  }

  void write_units(const std::string& title, Verdict verdict) {
    const std::vector<const GateUnit*> units = units_of(comparison_, verdict);
    if (units.empty()) return;
    line("");
    line(title + ":");
    write_unit_lines(units);
  }

  /// Means and effective lengths are shown whatever their verdict, those above left out.
  void write_overview() {
    std::vector<const GateUnit*> units;
    for (const GateUnit& unit : comparison_.units) {
      if (unit.verdict == Verdict::kSame && unit.kind != analysis::UnitKind::kTaskLength) units.push_back(&unit);
    }
    if (units.empty()) return;
    line("");
    line("unchanged:");
    write_unit_lines(units);
  }

  void write_worst_cells() {
    if (comparison_.worst_cells.empty()) return;
    line("");
    line(fmt::format("largest drops of {} cells (a family of their own, no part of the gate):", comparison_.n_cells));
    for (const analysis::CellChange& cell : comparison_.worst_cells) {
      line(fmt::format("  {}: {}: {:.0f} -> {:.0f} of 100, n = {}, p {}, adjusted {}",
                       visible_text(comparison_.pairs[cell.pair].name), cell_title(cell), 100 * cell.baseline,
                       100 * cell.candidate, cell.n_samples, format_p(cell.p), format_p(cell.p_adjusted)));
      if (!cell.examples.empty()) write_example(cell.examples.front());
    }
  }

  void write_example(const analysis::MissExample& example) {
    if (example.prompt_tail.empty() && example.expected.empty()) return;
    const std::string tail = visible_text(example.prompt_tail);
    line(fmt::format("    sample {}: …{}", example.index, tail_of(tail)));
    line(fmt::format("      expected {}", shortened(example.expected)));
    line(fmt::format("      baseline {}", shortened(example.baseline_reply)));
    line(fmt::format("      got      {}", shortened(example.candidate_reply)));
  }

  static std::string shortened(const std::string& text) {
    const std::string shown = visible_text(text);
    if (shown.empty()) return "(nothing)";
    return display_width(shown) <= kReplyColumns ? shown : fit_left(shown, kReplyColumns);
  }

  /// The last columns of a text, where the question stands.
  static std::string tail_of(const std::string& text) {
    std::size_t begin = 0;
    while (begin < text.size() && display_width(text.substr(begin)) > kReplyColumns) {
      ++begin;
      while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80U) ++begin;
    }
    return text.substr(begin);
  }

  void write_other_scores() {
    if (comparison_.other_scores.empty()) return;
    line("");
    line("other scorers, each in its own unit (no part of the gate, p not adjusted):");
    for (const analysis::ScoreChange& change : comparison_.other_scores) {
      const analysis::PairedDifference& scores = change.scores;
      std::string interval;
      if (scores.interval)
        interval = fmt::format("; 95 % {:+.3f} to {:+.3f}", scores.interval->low, scores.interval->high);
      line(fmt::format("  {}: {} of {} at {}: {:.3f} -> {:.3f} ({:+.3f}{}), p {}",
                       visible_text(comparison_.pairs[change.pair].name), change.scorer, change.task,
                       change.length_tokens, scores.baseline, scores.candidate, scores.difference, interval,
                       format_p(scores.p)));
    }
  }

  std::vector<std::string> differences() const {
    std::vector<std::string> out;
    for (const std::string& difference : comparison_.differences) {
      if (out.size() < kMaxDifferenceLines) out.push_back(visible_text(difference));
    }
    if (comparison_.differences.size() > out.size()) {
      out.push_back(fmt::format("and {} more", comparison_.differences.size() - out.size()));
    }
    return out;
  }

  void write_list(const std::string& title, const std::vector<std::string>& lines, const std::string& summary) {
    line("");
    line(summary.empty() ? title + ":" : title + ": " + summary);
    for (const std::string& text : lines) line("  " + text);
  }

  const Comparison& comparison_;
  std::ostream& out_;
};

void write_comparison_text(const Comparison& comparison, std::ostream& out) {
  ComparisonTextWriter(comparison, out).write();
}

}  // namespace

ComparisonFormEntry comparison_entries::text_entry() {
  return {"text", "the verdict and its reasons on one screen", &write_comparison_text};
}

}  // namespace fathom::reports
