#include "harness/rope/alibi_slopes.h"

#include "harness/core/error.h"
#include "tests/support/catch.h"

namespace fathom::rope {
namespace {

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
