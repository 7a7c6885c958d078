// Prints coverage of the intervals and alarms of the gate, with Monte-Carlo intervals: the figures of
// harness/docs/statistics.md.
//   statistics_figures coverage [TRIES]
//   statistics_figures gate [COMPARISONS]
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "harness/core/stats.h"
#include "tests/analysis/coverage_simulation.h"
#include "tests/analysis/gate_simulation.h"

namespace {

void print_coverage(const fathom::test::Coverage& coverage, const std::string& size) {
  const auto interval = fathom::wilson_interval(static_cast<double>(coverage.n_held), coverage.n_tries);
  fmt::print("| {} | {} | {} | {:.1f} % ({:.1f}–{:.1f}) |\n", coverage.name, size, coverage.n_tries,
             100 * coverage.share(), 100 * interval.low, 100 * interval.high);
}

void print_gate(const fathom::test::GateGrid& grid, double drop, std::int64_t n_comparisons) {
  const fathom::test::GateSimulation result = fathom::test::simulate_gate(grid, drop, n_comparisons);
  const auto interval = fathom::wilson_interval(static_cast<double>(result.n_alarms), result.n_comparisons);
  fmt::print("| {} | {:.0f} % | {:.0f} points | {} | {} | {:.1f} % ({:.1f}–{:.1f}) |\n", grid.name,
             100 * grid.discordance, 100 * drop, result.n_comparisons, result.n_alarms, 100 * result.share(),
             100 * interval.low, 100 * interval.high);
  std::fflush(stdout);
}

void print_gates(std::int64_t n_comparisons) {
  fmt::print(
      "| grid | discordance | true drop at one length | comparisons | alarms | share (95 % Monte-Carlo interval) |\n");
  fmt::print("|---|---|---|---|---|---|\n");
  for (const double drop : {0.0, 0.1}) {
    for (const double discordance : {0.01, 0.03, 0.10}) {
      fathom::test::GateGrid grid = fathom::test::nightly_grid();
      grid.discordance = discordance;
      print_gate(grid, drop, n_comparisons);
    }
    print_gate(fathom::test::ruler_grid(), drop, n_comparisons);
  }
}

void print_coverages(std::int64_t n_tries) {
  fmt::print("| interval of | samples | tries | coverage (95 % Monte-Carlo interval) |\n|---|---|---|---|\n");
  for (const int n : {50, 100, 200, 500}) {
    fmt::print("| one cell (Wilson) | {} | exact | {:.1f} % |\n", n, 100 * fathom::test::exact_wilson_coverage(n));
  }
  for (const int n : {50, 100, 200}) {
    print_coverage(fathom::test::clustered_mean_coverage(n, n_tries), std::to_string(n));
    print_coverage(fathom::test::paired_difference_coverage(n, n_tries), std::to_string(n));
  }
  for (const int n : {50, 100}) {
    const auto effective = fathom::test::effective_context_coverage(n, 20 * n_tries);
    print_coverage(effective.absolute, std::to_string(n));
    print_coverage(effective.relative, std::to_string(n));
  }
  for (const int n_seeds : {3, 5, 10}) {
    print_coverage(fathom::test::seed_mean_coverage(n_seeds, 100, 5 * n_tries), fmt::format("{} seeds x 100", n_seeds));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const std::int64_t n = argc > 2 ? std::atoll(argv[2]) : 0;
  if (what == "coverage") {
    print_coverages(n > 0 ? n : 200);
  } else if (what == "gate") {
    print_gates(n > 0 ? n : 1000);
  } else {
    fmt::print(stderr, "usage: statistics_figures coverage [TRIES] | gate [COMPARISONS]\n");
    return 2;
  }
  return 0;
}
