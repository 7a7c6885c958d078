#include "harness/analysis/seed_spread.h"

#include <cmath>

#include "harness/analysis/seed_groups.h"
#include "harness/core/error.h"
#include "tests/support/catch.h"

namespace fathom::analysis {

using Catch::Matchers::WithinAbs;

TEST_CASE("seed_spread: a worked table of three seeds and two samples", "[analysis][seeds]") {
  // Seed means 1/2, 1, 0; sample means 2/3, 1/3. MS_seed = 1/2; residuals +-1/3, -+1/6, -+1/6, so MS_rest = 1/6.
  const SeedSpread spread = seed_spread({{1, 0}, {1, 1}, {0, 0}}, RngKey("test"));
  CHECK(spread.n_seeds == 3);
  CHECK(spread.n_samples == 2);
  CHECK_THAT(spread.mean, WithinAbs(0.5, 1e-12));
  CHECK_THAT(spread.seed_sd.value(), WithinAbs(std::sqrt(1.0 / 6), 1e-12));
  // Variances of the samples within seeds: 1/2, 0, 0.
  CHECK_THAT(spread.sampling_sd.value(), WithinAbs(std::sqrt(1.0 / 12), 1e-12));
  CHECK(spread.interval.has_value());
}

TEST_CASE("seed_spread: hard samples are no scatter of seeds", "[analysis][seeds]") {
  const SeedSpread spread = seed_spread({{1, 0, 1, 0}, {1, 0, 1, 0}, {1, 0, 1, 0}}, RngKey("test"));
  CHECK(spread.seed_sd.value() == 0);
  CHECK_THAT(spread.sampling_sd.value(), WithinAbs(std::sqrt((4.0 / 12) / 4), 1e-12));
}

TEST_CASE("seed_spread: one training run has no seed scatter, two no interval", "[analysis][seeds]") {
  const SeedSpread one = seed_spread({{1, 0, 1}}, RngKey("test"));
  CHECK_FALSE(one.seed_sd);
  CHECK_FALSE(one.interval);
  CHECK(one.sampling_sd.has_value());
  const SeedSpread two = seed_spread({{1, 0, 1}, {0, 0, 1}}, RngKey("test"));
  CHECK(two.seed_sd.has_value());
  CHECK_FALSE(two.interval);
  CHECK(seed_spread({}, RngKey("test")).n_seeds == 0);
  CHECK_THROWS_AS(seed_spread({{1, 0}, {1}}, RngKey("test")), InvariantError);
}

TEST_CASE("seed_groups: variants that differ in the seed alone are one setting, on common samples",
          "[analysis][seeds]") {
  store::RunInfo info;
  for (const char* name : {"rope seed=1", "rope seed=2", "rope seed=3", "alibi"}) {
    eval::VariantRecord variant;
    variant.name = name;
    variant.position = variant.name == "alibi" ? "alibi" : "rope";
    variant.train_seed = static_cast<std::int64_t>(info.variants.size()) + 1;
    info.variants.push_back(variant);
  }
  // The worked table of three seeds and two samples, each with two depths, and a third sample that one seed lacks.
  const double scores[3][3] = {{1, 0, 1}, {1, 1, 1}, {0, 0, 1}};
  std::vector<store::OutcomeRow> outcomes;
  for (std::int32_t v = 0; v < 3; ++v) {
    for (const std::int32_t depth : {0, 10000}) {
      for (std::int64_t i = 0; i < 3; ++i) {
        const auto status = v == 1 && i == 2 ? eval::SampleStatus::kEngineError : eval::SampleStatus::kOk;
        outcomes.push_back({v, 0, 256, depth, i, status, scores[v][i]});
      }
    }
  }
  outcomes.push_back({3, 0, 256, 0, 0, eval::SampleStatus::kOk, 1.0});
  const auto groups = seed_groups(info, outcomes);
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].setting == "rope");
  CHECK(groups[0].length_tokens == 256);
  CHECK(groups[0].spread.n_seeds == 3);
  CHECK(groups[0].spread.n_samples == 2);
  CHECK_THAT(groups[0].spread.mean, WithinAbs(0.5, 1e-12));
  CHECK_THAT(groups[0].spread.seed_sd.value(), WithinAbs(std::sqrt(1.0 / 6), 1e-12));
}

}  // namespace fathom::analysis
