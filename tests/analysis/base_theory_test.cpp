#include "harness/analysis/base_theory.h"

#include <cmath>

#include "harness/rope/base_bound.h"
#include "harness/rope/rope_scaling.h"
#include "tests/support/catch.h"

namespace fathom::analysis {

using Catch::Matchers::WithinAbs;

TEST_CASE("base theory: every channel turns in training below its length over a turn", "[analysis][theory]") {
  CHECK_THAT(full_turn_base(256).value(), WithinAbs(40.7437, 1e-4));
  CHECK_FALSE(full_turn_base(6).has_value());
  CHECK_FALSE(full_turn_base(0).has_value());
}

TEST_CASE("base theory: the bound's curve holds every base asked for, and ends at twice the longest length",
          "[analysis][theory]") {
  const std::vector<BaseBound> curve = base_bound_curve({16, {10000, 100, 1e9}, 2048});
  REQUIRE(curve.size() > 20);
  CHECK(curve.front().base == 100);
  CHECK(curve.back().base == 1e9);
  CHECK(curve.back().tokens == 4096);
  for (std::size_t i = 0; i < curve.size(); ++i) {
    if (i > 0) CHECK(curve[i].base > curve[i - 1].base);
    if (curve[i].base != 10000) continue;
    const auto first = rope::first_negative_advantage(rope::default_inv_freq(32, 10000), 0, 4096);
    CHECK(curve[i].tokens == static_cast<double>(first.value_or(4096)));
  }
  // A long context keeps to the bases themselves.
  CHECK(base_bound_curve({64, {10000, 500000}, 1 << 20}).size() == 2);
  CHECK(base_bound_curve({0, {10000}, 2048}).empty());
  CHECK(base_bound_curve({16, {}, 2048}).empty());
  CHECK(base_bound_curve({16, {10000, 10000}, 2048}).size() == 1);
}

}  // namespace fathom::analysis
