#pragma once
// What every form of a comparison says in the same words.

#include <string>
#include <vector>

#include "harness/analysis/comparison.h"

namespace fathom::reports {

/// "niah_single_2 at 512", "mean at 512", "effective context (absolute)".
std::string unit_title(const analysis::GateUnit& unit);
/// "92.0 -> 80.0 (-12.0; 95 % -16.1 to -8.2)" in points, or "512 -> 256 (1 tested length lower)".
std::string unit_change(const analysis::GateUnit& unit);
/// "p 0.0004, adjusted 0.034"
std::string unit_p(const analysis::GateUnit& unit);
/// "0.0351", "3.1e-05", "<1e-30"
std::string format_p(double p);
/// "niah_single_2 at 512, depth 50 %"
std::string cell_title(const analysis::CellChange& cell);
/// One line: what the gate says, "regression: ...", "incomplete: ...", "no regression: ...".
std::string comparison_headline(const analysis::Comparison& comparison);
/// Units of one verdict, those that fell most first.
std::vector<const analysis::GateUnit*> units_of(const analysis::Comparison& comparison, analysis::Verdict verdict);
/// "3,300 of 3,400 samples in common; 40 failed in the candidate; …"
std::string shared_line(const analysis::Comparison& comparison);
/// One line for each task and length with samples that are not shared, at most `max_lines`, then how many more.
std::vector<std::string> unshared_lines(const analysis::Comparison& comparison, std::size_t max_lines);

}  // namespace fathom::reports
