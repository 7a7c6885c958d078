// The gate's promise, by simulation; the figures of a thousand comparisons each are in harness/docs/statistics.md.

#include "tests/analysis/gate_simulation.h"
#include "harness/core/stats.h"
#include "tests/support/catch.h"

namespace fathom::test {

TEST_CASE("gate: equal models raise an alarm in at most 5 % of comparisons", "[analysis][gate][slow]") {
  const GateSimulation nightly = simulate_gate(nightly_grid(), 0, 1000);
  INFO(nightly.n_alarms << " alarms");
  CHECK(nightly.share() <= 0.05);
}

TEST_CASE("gate: a drop of ten points at one length raises an alarm in at least 90 % of comparisons",
          "[analysis][gate][slow]") {
  const GateSimulation nightly = simulate_gate(nightly_grid(), 0.10, 1000);
  INFO(nightly.n_alarms << " alarms");
  CHECK(nightly.share() >= 0.90);
}

TEST_CASE("gate: a simulation is a pure function of its arguments", "[analysis][gate]") {
  const GateSimulation first = simulate_gate(nightly_grid(), 0.10, 5);
  CHECK(first.n_alarms == simulate_gate(nightly_grid(), 0.10, 5).n_alarms);
  CHECK(first.n_alarms >= 4);
}

}  // namespace fathom::test
