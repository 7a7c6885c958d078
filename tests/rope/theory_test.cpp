// The specification's tables of predictions, value by value, and what the golden files do not hold.

#include "harness/rope/theory.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "harness/core/error.h"
#include "harness/rope/alibi_slopes.h"
#include "harness/rope/angle.h"
#include "harness/rope/base_bound.h"
#include "harness/rope/precision.h"
#include "harness/rope/t5_bucket.h"
#include "tests/rope/theory_presets.h"

namespace fathom::rope {
namespace {

using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

constexpr std::int64_t kKilo = 1024;
constexpr std::int64_t kMega = 1024 * kKilo;

struct WrappedRow {
  double base;
  std::array<std::int64_t, 11> wrapped;
};

TEST_CASE("theory: wrapped channels of a 128-wide head at 2K to 10M tokens", "[rope][theory]") {
  const std::array<std::int64_t, 11> lengths = {2 * kKilo,   4 * kKilo,  8 * kKilo,   16 * kKilo,
                                                32 * kKilo,  64 * kKilo, 128 * kKilo, 256 * kKilo,
                                                512 * kKilo, kMega,      10 * kMega};
  const std::vector<WrappedRow> rows = {
      {1e4, {41, 46, 50, 55, 60, 64, 64, 64, 64, 64, 64}}, {5e4, {35, 39, 43, 47, 51, 55, 59, 63, 64, 64, 64}},
      {1e5, {33, 37, 40, 44, 48, 52, 56, 60, 63, 64, 64}}, {1.5e5, {32, 35, 39, 43, 46, 50, 54, 58, 61, 64, 64}},
      {5e5, {29, 32, 35, 39, 42, 46, 49, 52, 56, 59, 64}}, {1e6, {27, 31, 34, 37, 40, 43, 47, 50, 53, 56, 64}},
      {5e6, {25, 27, 30, 33, 36, 39, 42, 45, 48, 50, 60}}, {1e7, {23, 26, 29, 32, 34, 37, 40, 43, 45, 48, 57}},
      {1e8, {21, 23, 25, 28, 30, 33, 35, 37, 40, 42, 50}},
  };
  for (const WrappedRow& row : rows) {
    const std::vector<double> inv_freq = default_inv_freq(128, row.base);
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      INFO("base " << row.base << " length " << lengths[i]);
      CHECK(wrapped_channels(inv_freq, lengths[i]) == row.wrapped[i]);
    }
  }
}

struct ScaledRow {
  const char* preset;
  std::size_t channels;
  double longest_period;  ///< to three digits
  std::array<std::int64_t, 5> wrapped;
};

TEST_CASE("theory: wrapped channels of scaled presets", "[rope][theory]") {
  const std::array<std::int64_t, 5> lengths = {8 * kKilo, 32 * kKilo, 128 * kKilo, kMega, 10 * kMega};
  const std::vector<ScaledRow> rows = {
      {"Llama-3.1 (llama3 x8, 5e5, d128)", 64, 2.05e7, {32, 34, 39, 49, 60}},
      {"Qwen2.5 yarn x4 (1e6, d128)", 64, 2.03e7, {32, 36, 40, 50, 60}},
      {"DeepSeek-V3 yarn x40 (1e4, d64)", 32, 1.88e6, {21, 22, 23, 29, 32}},
      {"gpt-oss yarn x32 no truncate (1.5e5, d64)", 32, 2.08e7, {16, 17, 18, 23, 30}},
      {"PI x32 of Llama-2 (1e4,d128)", 64, 1.74e6, {26, 36, 46, 60, 64}},
      {"NTK x32 of Llama-2", 64, 1.74e6, {37, 44, 50, 61, 64}},
      {"YaRN x32 of Llama-2", 64, 1.74e6, {41, 44, 46, 60, 64}},
      {"MiniMax-M3 (5e6, rotary 64)", 32, 1.94e7, {15, 18, 21, 25, 30}},
  };
  for (const ScaledRow& row : rows) {
    INFO(row.preset);
    const std::vector<double> inv_freq = preset_list(row.preset).inv_freq;
    CHECK(inv_freq.size() == row.channels);
    CHECK_THAT(periods(inv_freq).back(), WithinRel(row.longest_period, 5e-3));
    for (std::size_t i = 0; i < lengths.size(); ++i) CHECK(wrapped_channels(inv_freq, lengths[i]) == row.wrapped[i]);
  }
}

TEST_CASE("theory: a channel that stands still never wraps", "[rope][theory]") {
  const std::vector<double> inv_freq = {1.0, 0.0};
  CHECK(std::isinf(periods(inv_freq)[1]));
  CHECK(wrapped_channels(inv_freq, INT64_C(1) << 40) == 1);
  CHECK(first_unwrapped_channel(inv_freq, 1000) == 1);
}

TEST_CASE("theory: critical dimensions of published models", "[rope][theory]") {
  CHECK(critical_dimension(128, 1e4, 4096) == 92);
  CHECK(critical_dimension(128, 5e5, 8192) == 70);
  CHECK(critical_dimension(128, 1e6, 16384) == 74);
  CHECK(critical_dimension(128, 1e6, 32768) == 80);
  CHECK(critical_dimension(64, 1e4, 4096) == 46);
  CHECK(critical_dimension(64, 1e4, 1 << 20) == 64);  // every channel turned
  CHECK(critical_dimension(64, 1e4, 5) == 0);         // none did
}

TEST_CASE("theory: extrapolation limits and critical bases of Llama-2", "[rope][theory]") {
  const std::vector<std::pair<double, double>> limits = {{5e4, 14982}, {1e5, 24656},  {2e5, 40578},
                                                         {5e5, 78400}, {1e6, 129027}, {2e6, 212347}};
  for (const auto& [base, limit] : limits) CHECK_THAT(extrapolation_limit(base, 92, 128), WithinAbs(limit, 0.5));
  const std::vector<std::pair<std::int64_t, double>> bases = {
      {4096, 1e4}, {8192, 26784}, {16384, 71738}, {32768, 192144}, {65536, 514640}};
  for (const auto& [length, base] : bases) CHECK_THAT(critical_base(1e4, 4096, length), WithinAbs(base, 0.5));
  const SmallBases small = small_bases(4096);
  CHECK_THAT(small.quarter, WithinAbs(2608, 0.5));
  CHECK_THAT(small.half, WithinAbs(1304, 0.5));
  CHECK_THAT(small.whole, WithinAbs(652, 0.5));
}

TEST_CASE("theory: first distances at which a similar key loses its advantage", "[rope][theory]") {
  const std::vector<std::pair<double, std::int64_t>> table = {{1e4, 1707},   {5e5, 18438},  {1e6, 27115},  {5e6, 82999},
                                                              {1e7, 144660}, {8.4e4, 8592}, {2.1e6, 77306}};
  for (const auto& [base, distance] : table) CHECK(first_negative_advantage(default_inv_freq(128, base)) == distance);
  struct Row {
    const char* preset;
    std::optional<std::int64_t> distance;
  };
  const std::vector<Row> presets = {{"Llama-2 1e4", 1707},
                                    {"Llama-2 + PI x8", 13649},
                                    {"Llama-2 + NTK x8", 5732},
                                    {"Llama-2 + YaRN x8", 8886},
                                    {"Yarn-Llama-2-128k (x32)", 25500},
                                    {"CodeLlama 1e6", 27115},
                                    {"Llama-3 5e5", 18438},
                                    {"Llama-3.1 llama3 x8", 85133},
                                    {"Qwen2.5 yarn x4", 66234},
                                    {"Qwen3-Coder 1e7", 144660},
                                    {"gpt-oss yarn x32", 64255},
                                    {"DeepSeek-V3 yarn x40, rope slice only", 4119},
                                    {"DeepSeek-V3 whole head (rope 64 + nope 128)", std::nullopt},
                                    {"MiniMax-M3 rotary 64 of 128, rope slice only", 31099},
                                    {"MiniMax-M3 whole head", std::nullopt},
                                    {"SmolLM3 5e6", 82999}};
  for (const Row& row : presets) {
    INFO(row.preset);
    const PresetList preset = preset_list(row.preset);
    CHECK(first_negative_advantage(preset.inv_freq, preset.n_still) == row.distance);
  }
}

TEST_CASE("theory: rounded published bases and where they fail within their context", "[rope][theory]") {
  struct Row {
    std::int64_t context;
    double base;
    std::optional<std::int64_t> distance;
  };
  const std::vector<Row> rows = {{1 * kKilo, 4.3e3, std::nullopt},
                                 {2 * kKilo, 1.6e4, std::nullopt},
                                 {4 * kKilo, 2.7e4, 4079},
                                 {8 * kKilo, 8.4e4, std::nullopt},
                                 {16 * kKilo, 3.1e5, 12223},
                                 {32 * kKilo, 6.4e5, 27685},
                                 {64 * kKilo, 2.1e6, std::nullopt},
                                 {128 * kKilo, 7.8e6, 128915},
                                 {256 * kKilo, 3.6e7, 207455},
                                 {512 * kKilo, 6.4e7, 511210},
                                 {kMega, 5.1e8, 874868}};
  for (const Row& row : rows) {
    INFO("context " << row.context);
    CHECK(first_negative_advantage(default_inv_freq(128, row.base), 0, row.context) == row.distance);
  }
}

TEST_CASE("theory: the search for a negative advantage finds what trying every distance finds", "[rope][theory]") {
  for (const double base : {500.0, 2000.0, 9000.0}) {
    for (const std::int64_t n_still : {0, 3}) {
      const std::vector<double> inv_freq = default_inv_freq(32, base);
      std::int64_t slow = 0;
      while (slow < 5000 && similar_key_advantage(inv_freq, n_still, slow) >= 0) ++slow;
      INFO("base " << base << " still " << n_still);
      CHECK(first_negative_advantage(inv_freq, n_still, 5000).value_or(5000) == slow);
      CHECK_FALSE(first_negative_advantage(inv_freq, n_still, slow).has_value());
    }
  }
}

TEST_CASE("theory: reach of biases", "[rope][theory]") {
  CHECK(static_cast<std::int64_t>(alibi_horizon(std::exp2(-8), 1e-3)) == 1768);
  CHECK(alibi_slopes(32).back() * 65536 == 256);
  CHECK(t5_resolution_end({32, 128, BucketDirection::kCausal}) == 113);
  CHECK_THAT(interpolation_error_bound(128, 1e4, 1), WithinRel(128 / 294.73, 1e-5));
}

TEST_CASE("theory: number formats lose positions", "[rope][theory][precision]") {
  CHECK(round_to_format(257, FloatFormat::kBfloat16) == 256);
  CHECK(round_to_format(259, FloatFormat::kBfloat16) == 260);
  CHECK(distinct_positions(FloatFormat::kBfloat16, 257) == 257);
  CHECK(distinct_positions(FloatFormat::kBfloat16, 258) == 257);
  CHECK(distinct_positions(FloatFormat::kBfloat16, 4096) == 769);
  CHECK(distinct_positions(FloatFormat::kFloat16, 2049) == 2049);
  CHECK(distinct_positions(FloatFormat::kFloat32, 1 << 24) == 1 << 24);
  // Counting says the same, over the end of float16's range too.
  for (const FloatFormat format : {FloatFormat::kBfloat16, FloatFormat::kFloat16}) {
    std::set<double> seen;
    for (std::int64_t m = 0; m < 70000; ++m) {
      seen.insert(round_to_format(static_cast<double>(m), format));
      if (m % 997 == 0 || m > 65500) {
        REQUIRE(distinct_positions(format, m + 1) == static_cast<std::int64_t>(seen.size()));
      }
    }
  }
  CHECK(round_to_format(std::ldexp(3, -25), FloatFormat::kFloat16) == std::ldexp(1, -23));  // tie of two subnormals
  CHECK(cast_frequencies(default_inv_freq(128, 5e5), FloatFormat::kFloat16).n_subnormal == 16);
  CHECK(cast_frequencies(default_inv_freq(128, 1e6), FloatFormat::kFloat16).n_subnormal == 19);
}

TEST_CASE("theory: float32 angles are wrong by 0.03 and more at a million tokens, table entries by a rounding",
          "[rope][theory][precision]") {
  for (const double base : {1e4, 5e5, 1e6, 5e6, 1e7}) {
    INFO("base " << base);
    const std::vector<double> inv_freq = default_inv_freq(128, base);
    double worst_float32 = 0;
    double worst_entry = 0;
    // A prime stride: every residue of every short period is met.
    for (std::int64_t m = kMega - 1; m > 0; m -= 1009) {
      worst_float32 = std::max(worst_float32, cosine_error_of_float32_angles(inv_freq, m));
      for (const double theta : inv_freq) {
        const double angle = static_cast<double>(m) * theta;
        const CosSin entry = table_entry(static_cast<double>(m), theta, 1);
        worst_entry = std::max({worst_entry, std::abs(static_cast<double>(entry.cos) - std::cos(angle)),
                                std::abs(static_cast<double>(entry.sin) - std::sin(angle))});
      }
    }
    CHECK(worst_float32 > 0.01);
    CHECK(worst_entry < 3e-8);    // half a unit in the last place of float32 just below 1, 2^-25 = 2.98e-8
    CHECK(worst_entry > 2.9e-8);  // … which is what rounding costs: the check does measure float32
  }
}

TEST_CASE("theory: lengths and shares without meaning are refused", "[rope][theory][errors]") {
  CHECK_THROWS_WITH(critical_base(1e4, 4096, 6),
                    "theory: a length of 6 tokens is no whole turn of the fastest channel; it must be at least 7");
  CHECK_THROWS_AS(critical_base(1e4, 6, 4096), ConfigError);
  CHECK_THROWS_WITH(alibi_horizon(0, 0.1),
                    "theory: an ALiBi horizon needs a slope above 0 and epsilon between 0 and 1, not 0 and 0.1");
  CHECK_THROWS_AS(alibi_horizon(1, 1), ConfigError);
}

}  // namespace
}  // namespace fathom::rope
