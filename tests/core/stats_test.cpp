#include "harness/core/stats.h"

#include "tests/support/catch.h"

using Catch::Matchers::WithinAbs;

TEST_CASE("wilson_interval: equals the worked values of specification 5.1", "[core][stats]") {
  struct Case {
    double successes;
    std::int64_t n;
    double low;
    double high;
  };
  for (const Case& c :
       {Case{9, 10, .596, .982}, Case{45, 50, .786, .957}, Case{450, 500, .871, .923}, Case{0, 10, 0, .278}}) {
    const auto interval = fathom::wilson_interval(c.successes, c.n);
    CHECK_THAT(interval.low, WithinAbs(c.low, 5e-4));
    CHECK_THAT(interval.high, WithinAbs(c.high, 5e-4));
  }
}

TEST_CASE("standard_error: nothing below two values, the textbook value above", "[core][stats]") {
  CHECK_FALSE(fathom::standard_error({}).has_value());
  CHECK_FALSE(fathom::standard_error({1}).has_value());
  CHECK_THAT(*fathom::standard_error({1, 2, 3, 4}), WithinAbs(0.6454972243679028, 1e-15));  // sqrt(5/3)/2
}

TEST_CASE("quantile: linear between order statistics", "[core][stats]") {
  CHECK_THAT(fathom::quantile({4, 1, 3, 2}, 0.5), WithinAbs(2.5, 1e-15));
  CHECK_THAT(fathom::quantile({4, 1, 3, 2}, 0.25), WithinAbs(1.75, 1e-15));
  CHECK(fathom::quantile({7}, 0.9) == 7);
}

TEST_CASE("bootstrap_mean_interval: constant data has no width, a coin about the normal width", "[core][stats]") {
  using fathom::RngKey;
  using fathom::RngStream;
  CHECK_FALSE(fathom::bootstrap_mean_interval({}, RngStream(RngKey("b"))).has_value());
  const auto constant = fathom::bootstrap_mean_interval({.3, .3, .3}, RngStream(RngKey("b")));
  CHECK_THAT(constant->high - constant->low, WithinAbs(0, 1e-12));
  std::vector<double> coin(100, 0.0);
  for (std::size_t i = 0; i < 50; ++i) coin[i] = 1;
  const auto interval = fathom::bootstrap_mean_interval(coin, RngStream(RngKey("b")));
  CHECK_THAT(interval->low, WithinAbs(.402, .02));
  CHECK_THAT(interval->high, WithinAbs(.598, .02));
}

TEST_CASE("expanded_tail: the worked values of Student's t", "[core][stats]") {
  // Phi(-sqrt(50/49) 2.00958) and Phi(-sqrt(10/9) 2.26216).
  CHECK_THAT(fathom::expanded_tail(50), WithinAbs(.021180, 2e-5));
  CHECK_THAT(fathom::expanded_tail(10), WithinAbs(.008550, 5e-5));
  CHECK_THAT(fathom::expanded_tail(1'000'000), WithinAbs(.025, 1e-5));
}
