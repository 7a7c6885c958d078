#include "reports/comparison/wording.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/core/text_util.h"
#include "reports/format.h"

namespace fathom::reports {
namespace {

using analysis::Comparison;
using analysis::GateUnit;
using analysis::SharedCount;
using analysis::UnitKind;
using analysis::Verdict;

double fall_of(const GateUnit& unit) {
  // An effective length that fell stands before every mean.
  return unit.is_effective() ? 1000.0 * unit.effective.steps : unit.scores.difference;
}

/// "40 failed in the candidate", ...: what keeps samples from being shared.
std::vector<std::string> unshared_parts(const SharedCount& counted) {
  const std::pair<std::int64_t, const char*> parts[] = {
      {counted.n_only_baseline, "only in the baseline"},
      {counted.n_only_candidate, "only in the candidate"},
      {counted.n_other_question, "with another question at the same place"},
      {counted.n_failed_baseline, "failed in the baseline"},
      {counted.n_failed_candidate, "failed in the candidate"},
      {counted.n_unfit, "too short or too long in both"}};
  std::vector<std::string> out;
  for (const auto& [n, what] : parts) {
    if (n > 0) out.push_back(fmt::format("{} {}", format_count(n), what));
  }
  return out;
}

SharedCount total_count(const Comparison& comparison) {
  SharedCount total;
  for (const SharedCount& counted : comparison.shared) {
    total.n_shared += counted.n_shared;
    total.n_only_baseline += counted.n_only_baseline;
    total.n_only_candidate += counted.n_only_candidate;
    total.n_other_question += counted.n_other_question;
    total.n_failed_baseline += counted.n_failed_baseline;
    total.n_failed_candidate += counted.n_failed_candidate;
    total.n_unfit += counted.n_unfit;
  }
  return total;
}

std::string steps_text(int steps) {
  const int n = std::abs(steps);
  return fmt::format("{} tested length{} {}", n, n == 1 ? "" : "s", steps < 0 ? "lower" : "higher");
}

}  // namespace

std::string format_p(double p) {
  if (p < 1e-30) return "<1e-30";
  return p < 0.001 ? fmt::format("{:.1e}", p) : fmt::format("{:.3g}", p);
}

std::string unit_title(const GateUnit& unit) {
  switch (unit.kind) {
    case UnitKind::kTaskLength:
      return fmt::format("{} at {}", visible_text(unit.task), unit.length_tokens);
    case UnitKind::kMeanLength:
      return fmt::format("mean at {}", unit.length_tokens);
    case UnitKind::kEffectiveAbsolute:
      return "effective context (absolute)";
    case UnitKind::kEffectiveRelative:
      return "effective context (relative)";
  }
  throw InvariantError("unknown UnitKind");
}

std::string unit_change(const GateUnit& unit) {
  if (unit.is_effective()) {
    const std::string values = fmt::format("{} -> {}", format_effective_text(unit.effective.baseline),
                                           format_effective_text(unit.effective.candidate));
    return unit.effective.steps == 0 ? values : fmt::format("{} ({})", values, steps_text(unit.effective.steps));
  }
  const analysis::PairedDifference& scores = unit.scores;
  std::string interval;
  if (scores.interval) {
    interval = fmt::format("; 95 % {:+.1f} to {:+.1f}", 100 * scores.interval->low, 100 * scores.interval->high);
  }
  return fmt::format("{:.1f} -> {:.1f} ({:+.1f}{})", 100 * scores.baseline, 100 * scores.candidate,
                     100 * scores.difference, interval);
}

std::string unit_p(const GateUnit& unit) {
  return fmt::format("p {}, adjusted {}", format_p(unit.p), format_p(unit.p_adjusted));
}

std::string cell_title(const analysis::CellChange& cell) {
  const std::string place = fmt::format("{} at {}", visible_text(cell.task), cell.length_tokens);
  return cell.depth_bp ? fmt::format("{}, depth {} %", place, format_depth(*cell.depth_bp)) : place;
}

std::vector<const GateUnit*> units_of(const Comparison& comparison, Verdict verdict) {
  std::vector<const GateUnit*> out;
  for (const GateUnit& unit : comparison.units) {
    if (unit.verdict == verdict) out.push_back(&unit);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const GateUnit* a, const GateUnit* b) { return fall_of(*a) < fall_of(*b); });
  return out;
}

std::string comparison_headline(const Comparison& comparison) {
  const std::size_t n_regressions = comparison.count(Verdict::kRegression);
  const std::string criterion =
      fmt::format("drop > {} points and adjusted p < {}", format_double(comparison.settings.tolerance_points),
                  format_double(comparison.settings.alpha));
  std::string found =
      n_regressions > 0
          ? fmt::format("regression: {} of {} tests fell ({})", n_regressions, comparison.units.size(), criterion)
          : fmt::format("no regression in {} tests ({})", comparison.units.size(), criterion);
  if (comparison.incomplete.empty()) return found;
  return fmt::format("incomplete: {}; {}", comparison.incomplete.front(), found);
}

std::string shared_line(const Comparison& comparison) {
  const SharedCount total = total_count(comparison);
  const std::int64_t n_baseline = total.n_shared + total.n_only_baseline + total.n_other_question +
                                  total.n_failed_baseline + total.n_failed_candidate + total.n_unfit;
  const std::string line = fmt::format("{} of {} samples of the baseline are shared", format_count(total.n_shared),
                                       format_count(n_baseline));
  const std::vector<std::string> parts = unshared_parts(total);
  return parts.empty() ? line : line + "; " + join(parts, ", ");
}

std::vector<std::string> unshared_lines(const Comparison& comparison, std::size_t max_lines) {
  std::vector<std::string> out;
  std::size_t n_more = 0;
  for (const SharedCount& counted : comparison.shared) {
    const std::vector<std::string> parts = unshared_parts(counted);
    if (parts.empty()) continue;
    if (out.size() >= max_lines) {
      ++n_more;
      continue;
    }
    out.push_back(fmt::format("{}, {} at {}: {} shared, {}", visible_text(comparison.pairs[counted.pair].name),
                              visible_text(counted.task), counted.length_tokens, format_count(counted.n_shared),
                              join(parts, ", ")));
  }
  if (n_more > 0) out.push_back(fmt::format("and {} more", n_more));
  return out;
}

}  // namespace fathom::reports
