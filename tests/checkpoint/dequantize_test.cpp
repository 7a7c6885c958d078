#include "harness/checkpoint/dequantize.h"

#include <cmath>
#include <cstring>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/shared_dir.h"

namespace fathom::checkpoint {
namespace {

std::vector<std::uint8_t> from_hex(const std::string& hex) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

TEST_CASE("dequantize: every golden block gives ggml's floats to the bit", "[checkpoint][dequantize]") {
  const nlohmann::json golden = test::read_golden("quant_blocks.json");
  std::size_t run = 0;
  for (const nlohmann::json& block : golden["blocks"]) {
    const std::string name = block["type"];
    INFO("type " << name);
    const StorageType* type = find_storage_type(name);
    REQUIRE(type != nullptr);
    REQUIRE(type->dequantize != nullptr);
    CHECK(type->block_values == block["block_size"].get<std::int64_t>());
    CHECK(type->block_bytes == block["type_size"].get<std::int64_t>());
    const std::vector<std::uint8_t> raw = from_hex(block["raw_hex"]);
    const auto expected = block["expected"].get<std::vector<double>>();
    const auto n = static_cast<std::int64_t>(expected.size());
    REQUIRE(static_cast<std::int64_t>(raw.size()) == n / type->block_values * type->block_bytes);
    std::vector<float> got(expected.size());
    dequantize_range(*type, raw.data(), 0, n, got.data());
    for (std::size_t i = 0; i < got.size(); ++i) {
      INFO("value " << i);
      CHECK(got[i] == static_cast<float>(expected[i]));  // nine digits name one float
    }
    ++run;
  }
  CHECK(run == 11);
}

TEST_CASE("dequantize: Q5_0 by hand", "[checkpoint][dequantize]") {
  // d = 0.5 (0x3800); fifth bits set for values 0 and 17; nibbles 3 for value 0, 15 for value 16, 2 for value 17.
  std::vector<std::uint8_t> block(22, 0);
  block[1] = 0x38;
  block[2] = 0x01;
  block[4] = 0x02;
  block[6] = 0xF3;
  block[7] = 0x20;
  std::vector<float> got(32);
  find_storage_type("Q5_0")->dequantize(block.data(), 1, got.data());
  CHECK(got[0] == 0.5f * (19 - 16));
  CHECK(got[1] == 0.5f * (0 - 16));
  CHECK(got[16] == 0.5f * (15 - 16));
  CHECK(got[17] == 0.5f * (18 - 16));
}

TEST_CASE("dequantize: MXFP4 by hand", "[checkpoint][dequantize]") {
  // e = 128: all twice. Value 0 has code 7 (6), value 16 code 9 (-0.5), value 1 code 2 (1), value 17 code 15 (-6).
  std::vector<std::uint8_t> block(17, 0);
  block[0] = 128;
  block[1] = 0x97;
  block[2] = 0xF2;
  std::vector<float> got(32);
  find_storage_type("MXFP4")->dequantize(block.data(), 1, got.data());
  CHECK(got[0] == 12.0f);
  CHECK(got[1] == 2.0f);
  CHECK(got[2] == 0.0f);
  CHECK(got[16] == -1.0f);
  CHECK(got[17] == -12.0f);
  block[0] = 0;  // the smallest scale is no normal float
  find_storage_type("MXFP4")->dequantize(block.data(), 1, got.data());
  CHECK(got[1] == std::ldexp(1.0f, -127));
}

TEST_CASE("dequantize: the reference's blocks of every supported type, to the bit", "[checkpoint][dequantize]") {
  FATHOM_NEEDS_SHARED("fixtures/real/quant_golden.json");
  const nlohmann::json golden = test::read_json_file(test::shared_path("fixtures/real/quant_golden.json"));
  std::size_t run = 0;
  for (const nlohmann::json& block : golden["blocks"]) {
    const StorageType* type = find_storage_type(block["type"].get<std::string>());
    if (type == nullptr || type->dequantize == nullptr) continue;
    INFO(type->name);
    const std::vector<std::uint8_t> raw = from_hex(block["raw_hex"]);
    const auto expected = block["expected"].get<std::vector<double>>();
    std::vector<float> got(expected.size());
    dequantize_range(*type, raw.data(), 0, static_cast<std::int64_t>(expected.size()), got.data());
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == static_cast<float>(expected[i]));
    ++run;
  }
  CHECK(run >= 10);
}

TEST_CASE("dequantize: Q3_K by hand", "[checkpoint][dequantize]") {
  // d = 0.5 (0x3800). Scales are 32 + 6 bits of zero, so d * (scale - 32) = -16 for every sub-block but these two:
  // sub-block 0 has low nibble 1 and upper pair 2: 33 - 32 = 1; sub-block 9 has low nibble 5 and upper pair 3: 53 - 32.
  std::vector<std::uint8_t> block(110, 0);
  block[109] = 0x38;
  block[96 + 0] = 0x01;
  block[96 + 1] = 0x50;                // high nibble of byte 1: sub-block 9
  block[96 + 8 + 0] = 0x02;            // pair 0 of byte 0: sub-block 0
  block[96 + 8 + 1] = 0x03 << 4;       // pair 2 of byte 1: sub-block 9
  block[32 + 0] = 0x03 | (0x02 << 2);  // value 0 has low bits 3, value 32 low bits 2
  block[0] = 0x01;                     // third bit of value 0
  block[32 + 32 + 16] = 0x01;          // value 144 (sub-block 9) has low bits 1
  block[16] = 1 << 4;                  // and its third bit
  std::vector<float> got(256);
  find_storage_type("Q3_K")->dequantize(block.data(), 1, got.data());
  CHECK(got[0] == 0.5f * 1 * 3);
  CHECK(got[1] == 0.5f * 1 * -4);
  CHECK(got[32] == 0.5f * -32 * (2 - 4));
  CHECK(got[33] == 0.5f * -32 * -4);
  CHECK(got[144] == 0.5f * 21 * 1);
  CHECK(got[145] == 0.5f * 21 * -4);
}

TEST_CASE("dequantize: vectors of half floats equal one at a time", "[checkpoint][dequantize]") {
  std::vector<std::uint8_t> bytes;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    bytes.push_back(static_cast<std::uint8_t>(bits & 255));
    bytes.push_back(static_cast<std::uint8_t>(bits >> 8));
  }
  std::vector<float> got(65536);
  // One less, so that the last ones are done without vectors; and from an odd address.
  bytes.insert(bytes.begin(), 0);
  find_storage_type("F16")->dequantize(bytes.data() + 1, 65535, got.data());
  for (std::uint32_t bits = 0; bits < 65535; ++bits) {
    const float expected = half_to_float(static_cast<std::uint16_t>(bits));
    if (std::isnan(expected)) {
      REQUIRE(std::isnan(got[bits]));
    } else {
      REQUIRE(std::memcmp(&got[bits], &expected, sizeof(float)) == 0);
    }
  }
  find_storage_type("BF16")->dequantize(bytes.data() + 1, 65535, got.data());
  for (std::uint32_t bits = 0; bits < 65535; ++bits) {
    const float expected = bfloat16_to_float(static_cast<std::uint16_t>(bits));
    REQUIRE(std::memcmp(&got[bits], &expected, sizeof(float)) == 0);
  }
}

TEST_CASE("dequantize: all 65536 half floats are exact", "[checkpoint][dequantize]") {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const int exponent = static_cast<int>((bits >> 10) & 31);
    const int fraction = static_cast<int>(bits & 1023);
    const float got = half_to_float(static_cast<std::uint16_t>(bits));
    if (exponent == 31) {
      REQUIRE((fraction == 0 ? std::isinf(got) : std::isnan(got)));
      continue;
    }
    const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    REQUIRE(static_cast<double>(got) == ((bits & 0x8000) != 0 ? -magnitude : magnitude));
    REQUIRE(std::signbit(got) == ((bits & 0x8000) != 0));
  }
}

TEST_CASE("dequantize: bfloat16 is the upper half of a float", "[checkpoint][dequantize]") {
  CHECK(bfloat16_to_float(0x3F80) == 1.0f);
  CHECK(bfloat16_to_float(0xC049) == -3.140625f);
  CHECK(bfloat16_to_float(0x0001) > 0.0f);
}

TEST_CASE("dequantize: a range need not begin or end on a block", "[checkpoint][dequantize]") {
  const StorageType& type = *find_storage_type("Q8_0");
  std::vector<std::uint8_t> blocks;
  for (int b = 0; b < 3; ++b) {
    blocks.push_back(0);
    blocks.push_back(0x3C);  // d = 1
    for (int i = 0; i < 32; ++i) blocks.push_back(static_cast<std::uint8_t>(32 * b + i));
  }
  for (const auto& [begin, end] :
       std::vector<std::pair<int, int>>{{0, 96}, {5, 9}, {31, 33}, {5, 70}, {64, 96}, {7, 7}}) {
    std::vector<float> got(static_cast<std::size_t>(end - begin) + 1, -1.0f);
    dequantize_range(type, blocks.data(), begin, end, got.data());
    for (int i = begin; i < end; ++i) CHECK(got[static_cast<std::size_t>(i - begin)] == static_cast<float>(i));
    CHECK(got.back() == -1.0f);  // nothing is written past the range
  }
}

}  // namespace
}  // namespace fathom::checkpoint
