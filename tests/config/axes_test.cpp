#include "harness/config/axes.h"

#include "harness/config/sweep.h"
#include "harness/core/error.h"
#include "tests/support/catch.h"

using fathom::ConfigError;
using fathom::config::expand_depths;
using fathom::config::expand_lengths;
using Lengths = std::vector<std::int64_t>;
using Depths = std::vector<std::int32_t>;

namespace {

std::string length_error(const std::string& entry) {
  try {
    expand_lengths({entry}, 256);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

std::string depth_error(const std::string& entry) {
  try {
    expand_depths({entry});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

const std::string kLengthFix = "; write tokens (512, 4K) or times the trained length (1.5x)";

}  // namespace

TEST_CASE("lengths: tokens, K and multiples, in the order given, each once", "[config][axes]") {
  CHECK(expand_lengths({"0.5x", "1x", "1.5x", "2x", "4x", "8x"}, 256) == Lengths{128, 256, 384, 512, 1024, 2048});
  CHECK(expand_lengths({"4K", "512", "0.5K", "1.5K"}, 256) == Lengths{4096, 512, 1536});
  CHECK(expand_lengths({"128K"}, 1) == Lengths{131072});
  CHECK(expand_lengths({"512", "2x", "1x"}, 256) == Lengths{512, 256});
  CHECK(expand_lengths({"0.333x", "0.01x"}, 100) == Lengths{33, 1});
  CHECK(expand_lengths({"1K:4K:1K"}, 256) == Lengths{1024, 2048, 3072, 4096});
  CHECK(expand_lengths({}, 256).empty());
}

TEST_CASE("lengths: left out, they follow from where the model comes from", "[config][axes]") {
  fathom::config::SweepSection sweep;
  fathom::config::ModelVariant variant;
  variant.source = "train";
  CHECK(expand_lengths(fathom::config::length_entries(sweep, variant), 256) ==
        Lengths{128, 256, 384, 512, 768, 1024, 2048});
  variant.source = "a.gguf";
  CHECK(expand_lengths(fathom::config::length_entries(sweep, variant), 256) ==
        Lengths{4096, 8192, 16384, 32768, 65536, 131072});
  sweep.lengths = {"1K"};
  CHECK(expand_lengths(fathom::config::length_entries(sweep, variant), 256) == Lengths{1024});
}

TEST_CASE("lengths: what is no length says why", "[config][axes][errors]") {
  CHECK(length_error("0") == "'0' is not a length: 0 tokens, at least 1 is needed" + kLengthFix);
  CHECK(length_error("0x") == "'0x' is not a length: the factor is zero" + kLengthFix);
  CHECK(length_error("0x10") == "'0x10' is not a length: it cannot be read" + kLengthFix);
  CHECK(length_error("-5") == "'-5' is not a length: it cannot be read" + kLengthFix);
  CHECK(length_error("-1x") == "'-1x' is not a length: it cannot be read" + kLengthFix);
  CHECK(length_error("x") == "'x' is not a length: it cannot be read" + kLengthFix);
  CHECK(length_error("K") == "'K' is not a length: it cannot be read" + kLengthFix);
  CHECK(length_error("") == "'' is not a length: it cannot be read" + kLengthFix);
  CHECK(length_error("4k") == "'4k' is not a length: it cannot be read" + kLengthFix);
  CHECK(length_error("1e3") == "'1e3' is not a length: it cannot be read" + kLengthFix);
  CHECK(length_error("1..5x") == "'1..5x' is not a length: it cannot be read" + kLengthFix);
  CHECK(length_error("0.3K") == "'0.3K' is not a length: tokens are whole numbers" + kLengthFix);
  CHECK(length_error("0.001x") == "'0.001x' is not a length: 0 tokens, at least 1 is needed" + kLengthFix);
  CHECK(length_error("2000000K") == "'2000000K' is not a length: more than 1073741824 tokens" + kLengthFix);
  CHECK(length_error("99999999x") == "'99999999x' is not a length: more than 1073741824 tokens" + kLengthFix);
  CHECK(length_error(std::string(400, '9')) ==
        "'" + std::string(400, '9') + "' is not a length: it cannot be read" + kLengthFix);
  CHECK(length_error("1:100000000:1") == "range '1:100000000:1' has 100000000 values; at most 10000");
  CHECK(length_error("1:2") == "range '1:2' has 2 parts; write low:high:step");
}

TEST_CASE("depths: percent in hundredths, ranges with both ends", "[config][axes]") {
  CHECK(expand_depths({"0:100:50"}) == Depths{0, 5000, 10000});
  CHECK(expand_depths({"0:100:10"}).size() == 11);
  CHECK(expand_depths({"0:1:0.25"}) == Depths{0, 25, 50, 75, 100});
  CHECK(expand_depths({"100", "0.07", "33.3", "100", "12.50"}) == Depths{10000, 7, 3330, 1250});
  CHECK(expand_depths({"50:50:10"}) == Depths{5000});
  CHECK(expand_depths({" 0 : 100 : 100 "}) == Depths{0, 10000});
  // Every hundredth survives the way through text: binary fractions would turn 0.29 into 28.
  for (std::int32_t depth = 0; depth <= 9999; ++depth) {
    const std::string cents = std::to_string(100 + depth % 100).substr(1);
    REQUIRE(expand_depths({std::to_string(depth / 100) + "." + cents}) == Depths{depth});
  }
}

TEST_CASE("depths: evenly spaced ones, and sigmoid ones that crowd at both ends", "[config][axes]") {
  CHECK(expand_depths({"linear:3"}) == Depths{0, 5000, 10000});
  CHECK(expand_depths({"linear:7"}) == Depths{0, 1700, 3300, 5000, 6700, 8300, 10000});
  // 100 / (1 + e^(-0.1 (x - 50))) at x = 0, 10, ..., 100, rounded to hundredths; the ends are kept.
  CHECK(expand_depths({"sigmoid:11"}) == Depths{0, 180, 474, 1192, 2689, 5000, 7311, 8808, 9526, 9820, 10000});
  CHECK(depth_error("sigmoid:1") == "'sigmoid:1' is no set of depths; write sigmoid:N with N from 2 to 1001");
}

TEST_CASE("depths: spread is no axis and stands alone", "[config][axes]") {
  CHECK(expand_depths({"spread"}).empty());
  CHECK(fathom::config::depth_entry_problem("spread") ==
        "'spread' cannot stand in a list; it leaves the depths to the tasks, one for each sample");
}

TEST_CASE("depths: what is no depth says why", "[config][axes][errors]") {
  CHECK(depth_error("0:100:0") == "range '0:100:0' has a step that is not above zero");
  CHECK(depth_error("100:0:10") == "range '100:0:10' runs downwards; write low:high:step");
  CHECK(depth_error("0:100:30") == "range '0:100:30' does not reach its end; choose a step that divides the whole");
  CHECK(depth_error("0:100") == "range '0:100' has 2 parts; write low:high:step");
  CHECK(depth_error("0:100:0.01") == "range '0:100:0.01' has 10001 values; at most 10000");
  CHECK(depth_error("-10") == "'-10' is not a depth; write percent (0..100) or a range (0:100:10)");
  CHECK(depth_error("-10:100:10") == "'-10:100:10' is not a depth; write percent (0..100) or a range (0:100:10)");
  CHECK(depth_error("half") == "'half' is not a depth; write percent (0..100) or a range (0:100:10)");
  CHECK(depth_error("") == "'' is not a depth; write percent (0..100) or a range (0:100:10)");
  CHECK(depth_error("5.") == "'5.' is not a depth; write percent (0..100) or a range (0:100:10)");
  CHECK(depth_error(".5") == "'.5' is not a depth; write percent (0..100) or a range (0:100:10)");
  CHECK(depth_error("1.2.3") == "'1.2.3' is not a depth; write percent (0..100) or a range (0:100:10)");
  CHECK(depth_error("100.01") == "depth '100.01' is outside 0..100 percent");
  CHECK(depth_error("101") == "depth '101' is outside 0..100 percent");
  CHECK(depth_error("99999999999999999999") == "depth '99999999999999999999' is outside 0..100 percent");
  CHECK(depth_error("33.333") == "depth '33.333' has more than two decimals; depths are whole 1/100 percent");
}
