#include "harness/analysis/change_points.h"

#include "harness/analysis/history.h"
#include "tests/support/catch.h"

namespace fathom::analysis {
namespace {

std::vector<double> levels(const std::vector<std::pair<int, double>>& parts) {
  std::vector<double> out;
  for (const auto& [n, level] : parts) out.insert(out.end(), static_cast<std::size_t>(n), level);
  return out;
}

}  // namespace

TEST_CASE("change_points: one step is found where it is", "[analysis][history]") {
  CHECK(change_points(levels({{8, 11}, {6, 10}}), RngKey("test")) == std::vector<std::size_t>{8});
}

TEST_CASE("change_points: two steps are found in order", "[analysis][history]") {
  CHECK(change_points(levels({{10, 11}, {10, 9}, {10, 12}}), RngKey("test")) == std::vector<std::size_t>{10, 20});
}

TEST_CASE("change_points: equal values, one outlier and short series have none", "[analysis][history]") {
  CHECK(change_points(levels({{20, 11}}), RngKey("test")).empty());
  CHECK(change_points(levels({{10, 11}, {1, 9}, {9, 11}}), RngKey("test")).empty());
  // Of the C(6, 3) orders of three and three two are as extreme: 0.1 is no evidence.
  CHECK(change_points(levels({{3, 11}, {3, 9}}), RngKey("test")).empty());
  CHECK(change_points({}, RngKey("test")).empty());
}

TEST_CASE("change_points: noise without a step is seldom a change", "[analysis][history]") {
  int n_found = 0;
  RngStream rng(RngKey("noise"));
  for (int i = 0; i < 200; ++i) {
    std::vector<double> series;
    for (int k = 0; k < 20; ++k) series.push_back(rng.normal());
    if (!change_points(series, RngKey("test").child(i)).empty()) ++n_found;
  }
  // At alpha = 0.01 two are expected; eight or more have a chance below 0.002.
  CHECK(n_found < 8);
}

TEST_CASE("history: a fall of the effective context is marked at the first run after it", "[analysis][history]") {
  HistorySeries series;
  for (int night = 0; night < 14; ++night) {
    HistoryPoint point;
    point.absolute.kind = Censoring::kExact;
    point.absolute.tokens = night < 8 ? 1024 : 512;
    point.average = 80 + night % 2;
    series.points.push_back(point);
  }
  mark_changes(series);
  for (std::size_t i = 0; i < series.points.size(); ++i) {
    CHECK(series.points[i].effective_changed == (i == 8));
    CHECK_FALSE(series.points[i].average_changed);
  }
}

}  // namespace fathom::analysis
