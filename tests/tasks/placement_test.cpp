#include "harness/task/placement.h"

#include <algorithm>
#include <set>

#include "harness/core/error.h"
#include "tests/support/catch.h"

namespace {

using namespace fathom;
using task::NeedleGroup;
using task::Placement;

/// Units of the given sizes in tokens.
task::MeasuredHaystack haystack_of(const std::vector<std::int64_t>& sizes) {
  task::MeasuredHaystack haystack;
  std::int64_t end = 0;
  for (const std::int64_t size : sizes) {
    end += size;
    haystack.units.push_back({" ", "x", true});
    haystack.end_tokens.push_back(end);
    haystack.largest_unit_tokens = std::max(haystack.largest_unit_tokens, size);
  }
  return haystack;
}

task::MeasuredHaystack equal_units(std::size_t n) {
  return haystack_of(std::vector<std::int64_t>(n, 10));
}

std::vector<Placement> balanced(const task::MeasuredHaystack& haystack, const task::BalancedRequest& request) {
  const task::PlacementSpace space(haystack, haystack.size());
  const RngKey place = RngKey("place").child(request.index);
  return task::place_balanced(space, request, RngStream(RngKey("order")), RngStream(place));
}

}  // namespace

TEST_CASE("placement: a depth goes to the nearest boundary, ties to the earlier", "[task][placement]") {
  const auto haystack = haystack_of({10, 30, 20, 40});  // boundaries at 0, 10, 40, 60, 100 of 100 tokens
  const task::PlacementSpace space(haystack, 4);
  const std::vector<bool> free(5, false);
  const auto nearest = [&](std::int32_t bp) { return space.nearest(bp, free).value(); };
  CHECK(nearest(0) == 0);
  CHECK(nearest(499) == 0);
  CHECK(nearest(500) == 0);  // 5 tokens from both
  CHECK(nearest(501) == 1);
  CHECK(nearest(2500) == 1);  // 15 from both
  CHECK(nearest(2501) == 2);
  CHECK(nearest(5000) == 2);
  CHECK(nearest(8001) == 4);
  CHECK(nearest(10000) == 4);
  CHECK(space.depth_bp(2) == 4000);
  std::vector<bool> taken = {false, false, true, false, false};
  CHECK(space.nearest(4500, taken) == std::optional<std::int64_t>(3));
  taken.assign(5, true);
  CHECK_FALSE(space.nearest(4500, taken).has_value());
}

TEST_CASE("placement: a finite first part of the haystack counts as the whole", "[task][placement]") {
  const auto haystack = haystack_of({10, 30, 20, 40});
  const task::PlacementSpace space(haystack, 2);
  CHECK(space.n_boundaries() == 3);
  CHECK(space.unit(2) == 2);
  CHECK(space.depth_bp(1) == 2500);
  CHECK(space.depth_bp(2) == 10000);
}

TEST_CASE("placement: units inside a sentence are no boundaries", "[task][placement]") {
  auto haystack = equal_units(4);
  haystack.units[1].boundary = false;
  haystack.units[3].boundary = false;
  const task::PlacementSpace space(haystack, 4);
  CHECK(space.n_boundaries() == 3);
  CHECK(space.unit(1) == 2);
}

TEST_CASE("placement: over eleven samples a gold needle visits every stratum once", "[task][placement]") {
  const auto haystack = equal_units(100);
  for (const std::int64_t m : {1, 2, 4}) {
    for (std::int64_t rank = 0; rank < m; ++rank) {
      std::set<std::int32_t> visited;
      for (std::int64_t index = 0; index < 11; ++index) {
        const auto placed =
            balanced(haystack, {std::vector<NeedleGroup>(static_cast<std::size_t>(m)), std::nullopt, index});
        visited.insert(placed[static_cast<std::size_t>(rank)].requested_depth_bp.value());
      }
      CHECK(visited.size() == 11);
    }
  }
}

TEST_CASE("placement: gold strata are i + round(11 j / m)", "[task][placement]") {
  const auto haystack = equal_units(100);
  const auto strata = [&](std::int64_t m, std::int64_t index) {
    std::set<std::int32_t> depths;
    for (const Placement& each :
         balanced(haystack, {std::vector<NeedleGroup>(static_cast<std::size_t>(m)), std::nullopt, index})) {
      depths.insert(each.requested_depth_bp.value() / 1000);
    }
    return depths;
  };
  CHECK(strata(1, 14) == std::set<std::int32_t>{3});
  CHECK(strata(4, 0) == std::set<std::int32_t>{0, 3, 6, 8});  // 0, 2.75, 5.5, 8.25
  CHECK(strata(4, 5) == std::set<std::int32_t>{5, 8, 0, 2});
}

TEST_CASE("placement: no two needles share a boundary, however few there are", "[task][placement]") {
  const auto haystack = equal_units(4);
  for (std::int64_t index = 0; index < 22; ++index) {
    const auto placed = balanced(haystack, {{{1, false}, {1, true}, {1, false}, {2, false}}, std::nullopt, index});
    std::set<std::int64_t> units;
    for (const Placement& each : placed) units.insert(each.unit);
    CHECK(units.size() == 5);
  }
  CHECK_THROWS_AS(balanced(haystack, {std::vector<NeedleGroup>(6), std::nullopt, 0}), InvariantError);
}

TEST_CASE("placement: distractors keep their places while the gold needle moves through the depths",
          "[task][placement]") {
  const auto haystack = equal_units(100);
  const auto at = [&](std::int32_t depth) { return balanced(haystack, {{{1, true}, {3, false}}, depth, 0}); };
  const auto first = at(500);
  std::size_t moved = 0;
  for (const std::int32_t depth : {1500, 4500, 9500}) {
    const auto placed = at(depth);
    CHECK(placed[0].requested_depth_bp == depth);
    for (std::size_t i = 1; i < 4; ++i) {
      moved +=
          std::none_of(first.begin() + 1, first.end(), [&](const Placement& p) { return p.unit == placed[i].unit; })
              ? 1
              : 0;
    }
  }
  CHECK(moved <= 3);  // only one whose stratum the gold needle takes
}

TEST_CASE("placement: chains keep their order", "[task][placement]") {
  const auto haystack = equal_units(40);
  for (std::int64_t index = 0; index < 11; ++index) {
    const auto placed = balanced(haystack, {{{5, true}, {5, false}}, std::nullopt, index});
    for (const std::size_t begin : {std::size_t{0}, std::size_t{5}}) {
      for (std::size_t i = begin + 1; i < begin + 5; ++i) CHECK(placed[i - 1].unit < placed[i].unit);
    }
  }
}

TEST_CASE("placement: RULER truncates n * (d / 100) in double", "[task][placement][ruler]") {
  // 29, 57 and 58 percent of 100 sentences give 28, 56 and 57.
  const auto haystack = equal_units(100);
  const task::PlacementSpace space(haystack, 100);
  std::set<std::int64_t> depths;
  for (const Placement& each : task::place_ruler_prose(space, 40, RngStream(RngKey("all")))) {
    const std::int64_t depth = each.requested_depth_bp.value() / 100;
    depths.insert(depth);
    CHECK(each.unit == (depth == 29 || depth == 57 || depth == 58 ? depth - 1 : depth));
  }
  CHECK(depths.size() == 40);  // round(100 j / 39)
  CHECK(*depths.begin() == 0);
  CHECK(depths.count(3) == 1);
  CHECK(depths.count(5) == 1);
  CHECK(depths.count(4) == 0);
  CHECK(*depths.rbegin() == 100);
}

TEST_CASE("placement: RULER's needles go to distinct units, never after the last", "[task][placement][ruler]") {
  for (std::int64_t i = 0; i < 50; ++i) {
    const auto placed = task::place_ruler_units(5, 4, RngStream(RngKey("units").child(i)));
    std::set<std::int64_t> units;
    for (const Placement& each : placed) units.insert(each.unit);
    CHECK(units.size() == 4);
    CHECK(*units.rbegin() <= 4);
  }
}

TEST_CASE("placement: RULER's order of four needles is 3rd, 2nd, 4th, 1st", "[task][placement][ruler]") {
  CHECK(task::ruler_needle_order(4) == std::vector<std::int64_t>{2, 1, 3, 0});
  CHECK(task::ruler_needle_order(1) == std::vector<std::int64_t>{0});
  auto seven = task::ruler_needle_order(7);
  CHECK(seven == task::ruler_needle_order(7));
  std::sort(seven.begin(), seven.end());
  CHECK(seven == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6});
}
