#include "harness/rope/alibi_slopes.h"

#include <cmath>

#include "harness/core/error.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

namespace fathom::rope {
namespace {

TEST_CASE("alibi: slopes equal the golden lists", "[rope][alibi]") {
  const nlohmann::json golden = test::read_golden("alibi.json");
  std::size_t run = 0;
  for (const nlohmann::json& c : golden["cases"]) {
    const std::int64_t n_heads = c["num_heads"];
    INFO("heads " << n_heads);
    const auto expected = c["slopes"].get<std::vector<double>>();
    const auto got = alibi_slopes(n_heads);
    REQUIRE(got.size() == expected.size());
    for (std::size_t h = 0; h < got.size(); ++h) {
      // The reference multiplies ratios, so its last digits wander.
      CHECK(std::abs(got[h] - expected[h]) <= 1e-13 * expected[h]);
      if (c["power_of_two"].get<bool>()) CHECK(static_cast<float>(got[h]) == static_cast<float>(expected[h]));
    }
    ++run;
  }
  CHECK(run == 14);
}

TEST_CASE("alibi: another maximal bias stretches the exponents", "[rope][alibi]") {
  CHECK(alibi_slopes(4, 16) == std::vector<double>{1.0 / 16, 1.0 / 256, 1.0 / 4096, 1.0 / 65536});
  CHECK(alibi_slopes(3, 8) == std::vector<double>{1.0 / 16, 1.0 / 256, 1.0 / 4});
}

TEST_CASE("alibi: impossible arguments are refused with the value", "[rope][alibi][errors]") {
  CHECK_THROWS_AS(alibi_slopes(0), ConfigError);
  CHECK_THROWS_WITH(alibi_slopes(0), "alibi: n_heads = 0 must be at least 1");
  CHECK_THROWS_WITH(alibi_slopes(4, 0), "alibi: max_bias = 0 must be a finite number above 0");
}

}  // namespace
}  // namespace fathom::rope
