// Coverage of the intervals that reports print, by simulation: averaged over accuracies .05 to .95.

#include "tests/analysis/coverage_simulation.h"
#include "tests/support/catch.h"

namespace fathom::test {

TEST_CASE("coverage: Wilson's interval, exactly", "[analysis][coverage]") {
  for (const int n : {50, 100, 200, 500}) {
    INFO(n);
    CHECK(exact_wilson_coverage(n) >= 0.93);
    CHECK(exact_wilson_coverage(n) <= 0.97);
  }
}

TEST_CASE("coverage: a mean over depths, samples as clusters", "[analysis][coverage][slow]") {
  for (const int n : {50, 100}) {
    const Coverage coverage = clustered_mean_coverage(n, 200);
    INFO(n << " samples: " << coverage.share() << " +- " << coverage.error());
    CHECK(coverage.share() >= 0.93);
    CHECK(coverage.share() <= 0.97);
  }
}

TEST_CASE("coverage: a paired difference", "[analysis][coverage][slow]") {
  for (const int n : {50, 100}) {
    const Coverage coverage = paired_difference_coverage(n, 200);
    INFO(n << " samples: " << coverage.share() << " +- " << coverage.error());
    CHECK(coverage.share() >= 0.93);
    CHECK(coverage.share() <= 0.97);
  }
}

TEST_CASE("coverage: the effective context", "[analysis][coverage][slow]") {
  const EffectiveCoverage coverage = effective_context_coverage(50, 2000);
  INFO(coverage.absolute.share() << " and " << coverage.relative.share());
  CHECK(coverage.absolute.share() >= 0.93);
  CHECK(coverage.relative.share() >= 0.93);
}

}  // namespace fathom::test
