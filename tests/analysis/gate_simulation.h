#pragma once
// The regression gate on simulated runs: how often it raises an alarm where there is nothing, and where there is a
// drop.

#include <cstdint>
#include <string>
#include <vector>

#include "harness/analysis/comparison.h"

namespace fathom::test {

/// A sweep of one model: every task at every length, with 0/1 outcomes.
struct GateGrid {
  std::string name;
  int n_tasks_with_depths = 2;
  int n_tasks_without_depths = 1;
  int n_depths = 11;
  std::int64_t n_samples = 50;
  std::vector<double> accuracies = {0.98, 0.97, 0.95, 0.90, 0.80, 0.60};  ///< by length
  double discordance = 0.03;  ///< share of answers that differ between two kernels or dtypes of one model
};

/// The grid of configs/nightly.ini.
GateGrid nightly_grid();
/// RULER's 13 tasks over six lengths.
GateGrid ruler_grid();

struct GateSimulation {
  std::int64_t n_comparisons = 0;
  std::int64_t n_alarms = 0;  ///< comparisons with any regression
  double share() const { return static_cast<double>(n_alarms) / static_cast<double>(n_comparisons); }
};

/// Compares pairs of simulated runs with the gate's defaults. Outcomes of one sample's depths are alike (correlation
/// 0.25), and so are its flips between the two runs. Both runs have equal true accuracies but for one length, drawn
/// for each comparison, where every task of the candidate is `drop` less accurate. A pure function of its arguments.
GateSimulation simulate_gate(const GateGrid& grid, double drop, std::int64_t n_comparisons);

}  // namespace fathom::test
