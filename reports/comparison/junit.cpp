// A comparison as JUnit XML: a suite a variant, a test case a tested hypothesis.

#include <fmt/format.h>

#include <ostream>

#include "reports/comparison/form.h"
#include "reports/comparison/wording.h"
#include "reports/format.h"

namespace fathom::reports {
namespace {

using analysis::Comparison;
using analysis::GateUnit;
using analysis::Verdict;

std::string junit_text(const std::string& text) {
  return escape_html(visible_text(text));
}

/// What a reader of the failure needs: the worst cells of this variant with an example.
std::string junit_details(const Comparison& comparison, const GateUnit& unit) {
  std::string out = junit_text(unit_change(unit) + "; " + unit_p(unit)) + "\n";
  for (const analysis::CellChange& cell : comparison.worst_cells) {
    if (cell.pair != unit.pair || (!unit.task.empty() && cell.task != unit.task)) continue;
    out += junit_text(fmt::format("{}: {:.0f} -> {:.0f} of 100", cell_title(cell), 100 * cell.baseline,
                                  100 * cell.candidate)) +
           "\n";
    for (const analysis::MissExample& example : cell.examples) {
      out += junit_text(fmt::format("  sample {}: …{} | expected {} | got {}", example.index, example.prompt_tail,
                                    example.expected, example.candidate_reply)) +
             "\n";
    }
  }
  return out;
}

void write_junit_case(const Comparison& comparison, const GateUnit& unit, std::ostream& out) {
  const std::string suite = junit_text(comparison.pairs[unit.pair].name);
  out << fmt::format("    <testcase classname=\"{}\" name=\"{}\"", suite, junit_text(unit_title(unit)));
  switch (unit.verdict) {
    case Verdict::kRegression:
      out << fmt::format(">\n      <failure type=\"regression\" message=\"{}\">{}</failure>\n    </testcase>\n",
                         junit_text(unit_change(unit) + "; " + unit_p(unit)), junit_details(comparison, unit));
      return;
    case Verdict::kWarning:
      out << fmt::format(">\n      <system-out>warning: {}</system-out>\n    </testcase>\n",
                         junit_text(unit_change(unit) + "; " + unit_p(unit)));
      return;
    case Verdict::kSame:
    case Verdict::kBetter:
      out << "/>\n";
      return;
  }
}

void write_comparison_junit(const Comparison& comparison, std::ostream& out) {
  const std::size_t n_errors = comparison.incomplete.size();
  out << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  out << fmt::format("<testsuites name=\"fathom compare\" tests=\"{}\" failures=\"{}\" errors=\"{}\">\n",
                     comparison.units.size() + 1, comparison.count(Verdict::kRegression), n_errors > 0 ? 1 : 0);
  out << fmt::format("  <testsuite name=\"completeness\" tests=\"1\" failures=\"0\" errors=\"{}\">\n",
                     n_errors > 0 ? 1 : 0);
  out << "    <testcase classname=\"completeness\" name=\"enough in common\"";
  if (n_errors == 0) {
    out << "/>\n";
  } else {
    out << fmt::format(">\n      <error type=\"incomplete\" message=\"{}\">",
                       junit_text(comparison.incomplete.front()));
    for (const std::string& reason : comparison.incomplete) out << junit_text(reason) << "\n";
    out << "</error>\n    </testcase>\n";
  }
  out << "  </testsuite>\n";
  for (std::size_t pair = 0; pair < comparison.pairs.size(); ++pair) {
    std::size_t n_tests = 0;
    std::size_t n_failures = 0;
    for (const GateUnit& unit : comparison.units) {
      if (unit.pair != pair) continue;
      ++n_tests;
      if (unit.verdict == Verdict::kRegression) ++n_failures;
    }
    out << fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\">\n",
                       junit_text(comparison.pairs[pair].name), n_tests, n_failures);
    for (const GateUnit& unit : comparison.units) {
      if (unit.pair == pair) write_junit_case(comparison, unit, out);
    }
    out << "  </testsuite>\n";
  }
  out << "  <system-out>" << junit_text(comparison_headline(comparison)) << "\n"
      << junit_text(shared_line(comparison)) << "\n";
  for (const std::string& difference : comparison.differences) out << junit_text(difference) << "\n";
  out << "</system-out>\n</testsuites>\n";
}

}  // namespace

ComparisonFormEntry comparison_entries::junit_entry() {
  return {"junit", "JUnit XML: one test case a tested hypothesis", &write_comparison_junit};
}

}  // namespace fathom::reports
