// Properties of the schemes' arithmetic that no table of values shows.

#include <cmath>

#include "harness/core/error.h"
#include "harness/rope/cope.h"
#include "harness/rope/grape.h"
#include "harness/rope/inkling_bias.h"
#include "harness/rope/relative_bias.h"
#include "harness/rope/sinusoidal.h"
#include "harness/rope/t5_bucket.h"
#include "harness/rope/xpos.h"
#include "tests/support/catch.h"

namespace fathom::rope {
namespace {

using Catch::Matchers::WithinAbs;

TEST_CASE("sinusoidal: an odd width ends with a sine, or with a zero in the tensor2tensor form", "[rope][sinusoidal]") {
  const auto paper = sinusoidal_row(SinusoidalVariant::kInterleaved, 5, 3);
  CHECK(paper[4] == std::sin(3 * std::pow(10000.0, -4.0 / 5)));
  const auto concatenated = sinusoidal_row(SinusoidalVariant::kConcatenated, 5, 3);
  CHECK(concatenated == std::vector<double>{paper[0], paper[2], paper[4], paper[1], paper[3]});
  CHECK(sinusoidal_row(SinusoidalVariant::kTensor2Tensor, 5, 3)[4] == 0);
}

TEST_CASE("sinusoidal: only the padding row is zero", "[rope][sinusoidal]") {
  const auto table = sinusoidal_table(SinusoidalVariant::kTensor2Tensor, 4, 3, 1);
  CHECK(std::vector<double>(table.begin() + 4, table.begin() + 8) == std::vector<double>(4, 0.0));
  CHECK(std::vector<double>(table.begin() + 8, table.end()) == sinusoidal_row(SinusoidalVariant::kTensor2Tensor, 4, 2));
}

TEST_CASE("sinusoidal: impossible tables are refused", "[rope][sinusoidal][errors]") {
  CHECK_THROWS_WITH(sinusoidal_row(SinusoidalVariant::kTensor2Tensor, 3, 0),
                    "sinusoidal: d_model = 3 must be at least 4 for tensor2tensor");
  CHECK_THROWS_WITH(sinusoidal_row(SinusoidalVariant::kInterleaved, 8, 0, 0),
                    "sinusoidal: base = 0 must be a finite number above 0");
  CHECK_THROWS_WITH(parse_sinusoidal_variant("paper"),
                    "sinusoidal: variant = 'paper' must be interleaved, concatenated or tensor2tensor");
  CHECK(parse_sinusoidal_variant("concatenated") == SinusoidalVariant::kConcatenated);
}

TEST_CASE("t5: settings without room for the logarithmic buckets are refused", "[rope][t5][errors]") {
  CHECK_NOTHROW(check_t5_buckets({32, 20, BucketDirection::kCausal}));
  CHECK_THROWS_WITH(check_t5_buckets({32, 16, BucketDirection::kCausal}),
                    "t5: max_distance = 16 must be above 16, up to which n_buckets = 32 gives every distance a bucket "
                    "of its own");
  CHECK_THROWS_WITH(check_t5_buckets({7, 128, BucketDirection::kBidirectional}),
                    "t5: n_buckets = 7 must be an even number of at least 4");
  CHECK_THROWS_AS(check_t5_buckets({1, 128, BucketDirection::kCausal}), ConfigError);
}

TEST_CASE("t5: buckets never decrease with the distance and stay in range", "[rope][t5]") {
  for (const T5Buckets& buckets :
       {T5Buckets{32, 128, BucketDirection::kBidirectional}, T5Buckets{9, 100, BucketDirection::kCausal},
        T5Buckets{64, 4096, BucketDirection::kCausal}}) {
    for (const std::int64_t sign : {-1, 1}) {
      std::int64_t previous = 0;
      for (std::int64_t distance = 0; distance < 10000; ++distance) {
        const std::int64_t bucket = t5_bucket(sign * distance, buckets);
        REQUIRE(bucket >= previous);
        REQUIRE(bucket < buckets.n_buckets);
        previous = bucket;
      }
    }
  }
}

TEST_CASE("inkling: nothing is added outside the extent", "[rope][inkling]") {
  const std::vector<double> projection = {1, 2, 3};
  CHECK(inkling_bias({2}, projection, 3, 2) == 6);
  CHECK(inkling_bias({2}, projection, 3, 3) == 0);
  CHECK(inkling_bias({2}, projection, 3, -1) == 0);
}

TEST_CASE("xpos: a product of query and key decays with their distance only", "[rope][xpos]") {
  for (const double zeta : xpos_zeta(8)) {
    for (const double centre : {0.0, 300.0}) {
      const double product = xpos_scale(zeta, 500, centre) / xpos_scale(zeta, 100, centre);
      CHECK_THAT(product, WithinAbs(std::pow(zeta, 400.0 / 512), 1e-14));
    }
  }
  CHECK(xpos_centre(4) == 2);
  CHECK(xpos_centre(5) == 3);
}

TEST_CASE("fire: below the threshold only the distance counts", "[rope][fire]") {
  CHECK(fire_argument(3, 4, 0.1, 64) == fire_argument(3, 63, 0.1, 64));
  CHECK(fire_argument(3, 65, 0.1, 64) < fire_argument(3, 64, 0.1, 64));
  CHECK_THAT(fire_argument(100, 100, 0.1, 64), WithinAbs(1, 1e-6));
}

TEST_CASE("cope: positions count gates and stop at the last embedding", "[rope][cope]") {
  const std::vector<double> open(6, 50.0);  // sigmoid = 1
  CHECK(cope_positions(open, 4) == std::vector<double>{3, 3, 3, 3, 2, 1});
  CHECK(cope_bias(1.25, {0, 4, 8}) == 5);
  CHECK(cope_bias(2, {0, 4, 8}) == 8);
}

TEST_CASE("grape: rotations keep lengths, compose, and turn nothing where the plane vanishes", "[rope][grape]") {
  const std::vector<double> a = {1, 0.3, -0.2};
  const std::vector<double> b = {0.1, 2, 0.5};
  const std::vector<double> x = {1, 2, 3};
  const auto turned = grape_rotate(a, b, 0.7, x);
  double length = 0;
  for (const double value : turned) length += value * value;
  CHECK_THAT(length, WithinAbs(14, 1e-12));
  const auto twice = grape_rotate(a, b, 0.4, turned);
  const auto once = grape_rotate(a, b, 1.1, x);
  for (std::size_t i = 0; i < x.size(); ++i) CHECK_THAT(twice[i], WithinAbs(once[i], 1e-12));
  CHECK(grape_rotate(a, a, 0.7, x) == x);
}

TEST_CASE("grape: unit vectors as plane give RoPE's rotation of a pair, the other way round", "[rope][grape]") {
  const auto got = grape_rotate({1, 0}, {0, 1}, -0.3, {2, 5});
  CHECK_THAT(got[0], WithinAbs(2 * std::cos(0.3) - 5 * std::sin(0.3), 1e-15));
  CHECK_THAT(got[1], WithinAbs(5 * std::cos(0.3) + 2 * std::sin(0.3), 1e-15));
}

}  // namespace
}  // namespace fathom::rope
