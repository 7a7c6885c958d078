#include "harness/core/random.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "tests/support/catch.h"

using fathom::PhiloxBlock;
using fathom::RngKey;
using fathom::RngStream;

TEST_CASE("philox4x32: equals the published known answers", "[core][random]") {
  // Known-answer vectors of the authors' Random123 distribution (kat_vectors, philox4x32 with 10 rounds).
  const auto check = [](PhiloxBlock counter, std::uint64_t key, PhiloxBlock expected) {
    const PhiloxBlock got = fathom::philox4x32(counter, key);
    for (int i = 0; i < 4; ++i) CHECK(got.word[i] == expected.word[i]);
  };
  check({{0, 0, 0, 0}}, 0, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}});
  check({{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}}, 0xffffffffffffffffULL,
        {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}});
  check({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0x299f31d0a4093822ULL,
        {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}});
}

TEST_CASE("rng_stream: the same key gives the same draws, another key others", "[core][random]") {
  RngStream a(RngKey("x|facts"));
  RngStream b(RngKey("x").child("facts"));
  RngStream c(RngKey("x|hay"));
  int same_as_other = 0;
  for (int i = 0; i < 100; ++i) {
    const auto value = a.next_u64();
    CHECK(value == b.next_u64());
    same_as_other += value == c.next_u64() ? 1 : 0;
  }
  CHECK(same_as_other == 0);
}

TEST_CASE("rng_stream: frozen draws, so that a seed means the same sample in every version", "[core][random]") {
  RngStream rng(RngKey("fathom/1|golden"));
  const std::vector<std::uint64_t> indices = [&] {
    std::vector<std::uint64_t> out;
    for (int i = 0; i < 6; ++i) out.push_back(rng.uniform_index(1000));
    return out;
  }();
  std::vector<int> order(8);
  std::iota(order.begin(), order.end(), 0);
  rng.shuffle(order);
  const auto drawn = rng.sample_without_replacement(1000000, 4);
  CHECK(indices == std::vector<std::uint64_t>{809, 66, 545, 555, 305, 582});
  CHECK(order == std::vector<int>{5, 4, 6, 1, 3, 2, 7, 0});
  CHECK(drawn == std::vector<std::uint64_t>{789330, 40889, 617672, 454433});
}

TEST_CASE("uniform_index: every value of a small bound comes up equally often", "[core][random]") {
  RngStream rng(RngKey("uniform"));
  std::vector<int> count(7, 0);
  for (int i = 0; i < 70000; ++i) ++count[rng.uniform_index(7)];
  double chi2 = 0;
  for (const int n : count) chi2 += (n - 10000.0) * (n - 10000.0) / 10000.0;
  CHECK(chi2 <
        22.46);  // 99.9 % point of chi-square with 6 degrees of freedom; the stream is fixed, so this can't flicker
  CHECK(rng.uniform_index(1) == 0);
}

TEST_CASE("uniform_int: covers both ends and the whole range of int64", "[core][random]") {
  RngStream rng(RngKey("ends"));
  std::set<std::int64_t> seen;
  for (int i = 0; i < 200; ++i) seen.insert(rng.uniform_int(-1, 1));
  CHECK(seen == std::set<std::int64_t>{-1, 0, 1});
  CHECK_NOTHROW(rng.uniform_int(INT64_MIN, INT64_MAX));
}

TEST_CASE("sample_without_replacement: distinct, complete at n = count, equal to the dense shuffle", "[core][random]") {
  RngStream sparse(RngKey("sample"));
  RngStream dense(RngKey("sample"));
  const auto drawn = sparse.sample_without_replacement(50, 50);
  std::vector<std::uint64_t> items(50);
  std::iota(items.begin(), items.end(), std::uint64_t{0});
  dense.shuffle(items);
  std::reverse(items.begin(), items.end());  // a shuffle from the end fixes the last place first
  CHECK(std::vector<std::uint64_t>(drawn.begin(), drawn.end() - 1) ==
        std::vector<std::uint64_t>(items.begin(), items.end() - 1));
  CHECK(std::set<std::uint64_t>(drawn.begin(), drawn.end()).size() == 50);
}

TEST_CASE("normal: mean 0, variance 1", "[core][random]") {
  RngStream rng(RngKey("normal"));
  double sum = 0;
  double squares = 0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = rng.normal();
    sum += x;
    squares += x * x;
  }
  CHECK(std::abs(sum / kDraws) < 0.01);
  CHECK(std::abs(squares / kDraws - 1) < 0.02);
}
