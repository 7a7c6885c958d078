// Defects that public implementations had, as far as the arithmetic of frequencies, tables and biases can have them;
// each test bears the number of its defect in the specification.

#include <algorithm>
#include <cmath>
#include <vector>

#include "harness/rope/alibi_slopes.h"
#include "harness/rope/angle.h"
#include "harness/rope/methods/yarn_ramp.h"
#include "harness/rope/precision.h"
#include "tests/rope/golden_checks.h"

namespace fathom::rope {
namespace {

using Catch::Matchers::WithinAbs;

const RopeGeometry kLlama2{128, 1e4, 4096};

/// DeepSeek's product of all factors on a logit of the rotated slice.
double logit_factor(const RopeFrequencies& frequencies) {
  return frequencies.attention_factor * frequencies.attention_factor * frequencies.softmax_scale_factor;
}

TEST_CASE("T-02: dynamic NTK's base follows every single length of a decode", "[rope][defects]") {
  for (std::int64_t length = 4090; length < 4110; ++length) {
    const double alpha = 2.0 * static_cast<double>(std::max<std::int64_t>(length, 4096)) / 4096 - 1;
    const std::vector<double> expected = default_inv_freq(128, 1e4 * std::pow(alpha, 128.0 / 126));
    CHECK(worst_relative(frequencies_of("dynamic", 2, kLlama2, {}, length).inv_freq, expected) < 1e-12);
  }
}

TEST_CASE("T-04: the order in which lengths are asked for does not matter", "[rope][defects]") {
  for (const char* method : {"dynamic", "yarn"}) {
    const std::map<std::string, std::string> options = std::string(method) == "yarn"
                                                           ? std::map<std::string, std::string>{{"dynamic", "on"}}
                                                           : std::map<std::string, std::string>{};
    const auto up = scalings().at(method).make(2, OptionSource("[test]", options));
    const auto down = scalings().at(method).make(2, OptionSource("[test]", options));
    const auto up_5k = up->frequencies(kLlama2, 5000).inv_freq;
    const auto up_8k = up->frequencies(kLlama2, 8192).inv_freq;
    CHECK(down->frequencies(kLlama2, 8192).inv_freq == up_8k);
    CHECK(down->frequencies(kLlama2, 5000).inv_freq == up_5k);
    // YaRN's blend of theta and theta / 1 may round the last bit.
    CHECK(worst_relative(down->frequencies(kLlama2, 100).inv_freq, default_inv_freq(128, 1e4)) < 4e-16);
  }
}

TEST_CASE("T-08: a dynamic scaling that stays below the trained length is plain RoPE to the bit", "[rope][defects]") {
  for (const std::int64_t length : {1, 2048, 4096}) {
    CHECK(frequencies_of("dynamic", 8, kLlama2, {}, length).inv_freq == default_inv_freq(128, 1e4));
  }
}

TEST_CASE("T-10, T-11: neighbouring positions have different rows, whatever the weights' format",
          "[rope][defects][precision]") {
  const double theta = default_inv_freq(128, 1e6)[0];
  const auto row = [theta](std::int64_t m) { return table_entry(static_cast<double>(m), theta, 1); };
  for (const std::int64_t m : {15962, 65535, 131071, 1048575}) {
    CHECK(row(m).cos != row(m - 1).cos);
    CHECK(row(m).sin != row(m + 1).sin);
    CHECK(round_to_format(static_cast<double>(m), FloatFormat::kBfloat16) !=
          static_cast<double>(m));  // what the defect did to them
  }
}

TEST_CASE("T-12: a table is better than float16 frequencies make it", "[rope][defects][precision]") {
  const double theta = default_inv_freq(32, 1e4)[1];
  const double exact = std::cos(1857 * theta);
  CHECK(std::abs(std::cos(1857 * round_to_format(theta, FloatFormat::kFloat16)) - exact) > 0.1);
  CHECK_THAT(table_entry(1857, theta, 1).cos, WithinAbs(exact, 3e-8));
}

TEST_CASE("T-13: angles are reduced exactly beyond 48039, where fast sines end", "[rope][defects][precision]") {
  for (const double base : {1e4, 5e6}) {
    for (const double theta : default_inv_freq(128, base)) {
      for (const std::int64_t m : {48037, 48038, 48039, 65536, 131071, 1048575}) {
        const CosSin entry = table_entry(static_cast<double>(m), theta, 1);
        CHECK_THAT(entry.cos, WithinAbs(std::cos(static_cast<double>(m) * theta), 3e-8));
        CHECK_THAT(entry.sin, WithinAbs(std::sin(static_cast<double>(m) * theta), 3e-8));
      }
    }
  }
}

TEST_CASE("T-15: a table in bf16 is the float32 value rounded to nearest, ties to even", "[rope][defects][precision]") {
  const auto cos_of = [](double value, FloatFormat format) { return table_entry(0, 1, value, format).cos; };
  const auto bf16 = [&](double value) { return static_cast<double>(cos_of(value, FloatFormat::kBfloat16)); };
  const auto step = [](int n) { return std::ldexp(1.0, -n); };
  CHECK(bf16(1 + step(8)) == 1);                           // halfway to 1 + 2^-7, whose last bit is odd
  CHECK(bf16(1 + 3 * step(8)) == 1 + step(6));             // halfway, upwards to the even neighbour
  CHECK(bf16(1 + step(8) + step(23)) == 1 + step(7));      // past halfway by one bit of float32
  CHECK(bf16(1 + step(8) + step(40)) == 1);                // float32 drops what lay past halfway
  CHECK(bf16(1 + 3 * step(8) - step(40)) == 1 + step(6));  // and restores what was missing
  CHECK(static_cast<double>(cos_of(1 + step(11), FloatFormat::kFloat16)) == 1);
  CHECK(static_cast<double>(cos_of(1 + 3 * step(11), FloatFormat::kFloat16)) == 1 + step(9));
  for (const double theta : default_inv_freq(64, 1e4)) {
    for (const std::int64_t m : {1, 17, 4095, 1048575}) {
      const CosSin single = table_entry(static_cast<double>(m), theta, 1.25);
      const CosSin narrow = table_entry(static_cast<double>(m), theta, 1.25, FloatFormat::kBfloat16);
      CHECK_THAT(narrow.cos, WithinAbs(single.cos, 1.25 * unit_roundoff(FloatFormat::kBfloat16)));
      CHECK(static_cast<double>(narrow.sin) ==
            round_to_format(static_cast<double>(single.sin), FloatFormat::kBfloat16));
    }
  }
}

TEST_CASE("T-16: angles by repeated float32 multiplication drift, the tables' do not", "[rope][defects][precision]") {
  const std::vector<double> inv_freq = default_inv_freq(128, 1e4);
  const std::vector<float> iterated = iterated_float32_angles(128, 1e4, 1048575);
  double worst = 0;
  for (std::size_t i = 0; i < inv_freq.size(); ++i) {
    const double exact = std::cos(1048575 * inv_freq[i]);
    worst = std::max(worst, std::abs(std::cos(static_cast<double>(iterated[i])) - exact));
    CHECK_THAT(table_entry(1048575, inv_freq[i], 1).cos, WithinAbs(exact, 3e-8));
  }
  CHECK_THAT(worst, WithinAbs(0.0854, 1e-3));
}

TEST_CASE("T-20: llama3 divides the slow channels and leaves the fast ones", "[rope][defects]") {
  const RopeFrequencies got = frequencies_of("llama3", 8, {128, 5e5, 8192});
  const std::vector<double> plain = default_inv_freq(128, 5e5);
  CHECK(got.inv_freq.front() == plain.front());
  CHECK(got.inv_freq.back() == plain.back() / 8);
}

TEST_CASE("T-22: the given factor counts, not the ratio of two lengths", "[rope][defects]") {
  const RopeFrequencies got = frequencies_of("yarn", 4, {128, 1e6, 32768});
  CHECK_THAT(default_inv_freq(128, 1e6).back() / got.inv_freq.back(), WithinAbs(4, 1e-12));
  CHECK_THAT(got.attention_factor, WithinAbs(0.1 * std::log(4.0) + 1, 1e-12));
}

TEST_CASE("T-23: the ramp is taken from the original length", "[rope][defects]") {
  const YarnRamp ramp = yarn_ramp({64, 1e4, 4096}, {});
  CHECK(ramp.low == 10);
  CHECK(ramp.high == 23);
}

TEST_CASE("T-24, T-38: mscale and mscale_all_dim are coefficients of a ratio, and one alone counts for nothing",
          "[rope][defects]") {
  const auto factor = [](const std::map<std::string, std::string>& options) {
    return frequencies_of("yarn", 40, {64, 1e4, 4096}, options).attention_factor;
  };
  const auto m = [](double k) { return 0.1 * k * std::log(40.0) + 1; };
  CHECK_THAT(factor({{"mscale", "0.707"}, {"mscale_all_dim", "0.707"}}), WithinAbs(1, 1e-12));
  CHECK_THAT(factor({{"mscale", "1"}, {"mscale_all_dim", "0.5"}}), WithinAbs(m(1) / m(0.5), 1e-12));
  CHECK_THAT(factor({{"mscale", "0.707"}}), WithinAbs(m(1), 1e-12));
  CHECK_THAT(factor({{"mscale", "1"}, {"mscale_all_dim", "0"}}), WithinAbs(m(1), 1e-12));
}

TEST_CASE("T-25, T-26: DeepSeek's logits are sharpened by m squared, once", "[rope][defects]") {
  const std::map<std::string, std::string> deepseek = {
      {"mscale", "1"}, {"mscale_all_dim", "1"}, {"softmax_mscale", "on"}};
  const double m = 0.1 * std::log(40.0) + 1;
  const RopeFrequencies got = frequencies_of("yarn", 40, {64, 1e4, 4096}, deepseek);
  CHECK_THAT(got.softmax_scale_factor / std::sqrt(192.0), WithinAbs(0.1352338, 1e-7));
  CHECK_THAT(logit_factor(got), WithinAbs(m * m, 1e-12));
  // The usual way comes to the same product for the rotated slice.
  CHECK_THAT(logit_factor(frequencies_of("yarn", 40, {64, 1e4, 4096})), WithinAbs(m * m, 1e-12));
}

TEST_CASE("T-28: a given attention factor is used as it stands", "[rope][defects]") {
  CHECK(frequencies_of("yarn", 32, kLlama2, {{"attention_factor", "1.25"}}).attention_factor == 1.25);
  CHECK(frequencies_of("longrope", 32, {4, 1e4, 4096},
                       {{"short_factor", "1,1"}, {"long_factor", "1,2"}, {"attention_factor", "1.25"}})
            .attention_factor == 1.25);
}

TEST_CASE("T-31: without truncation the ramp keeps its real ends", "[rope][defects]") {
  YarnRampSettings settings;
  settings.rounding = YarnRounding::kNone;
  const YarnRamp ramp = yarn_ramp({64, 1.5e5, 4096}, settings);
  CHECK_THAT(ramp.low, WithinAbs(8.0928, 5e-5));
  CHECK_THAT(ramp.high, WithinAbs(17.3980, 5e-5));
}

TEST_CASE("T-32: the ramp's end is clamped to the rotary width, not to the channels", "[rope][defects]") {
  YarnRampSettings settings;
  settings.beta_slow = 0.001;  // so slow that no channel of the list turns that little
  CHECK(yarn_ramp({64, 1e4, 1 << 20}, settings).high == 63);
  settings.clamp = YarnClamp::kChannels;
  CHECK(yarn_ramp({64, 1e4, 1 << 20}, settings).high == 31);
}

TEST_CASE("T-41: exactly the original length still takes longrope's short list", "[rope][defects]") {
  const std::map<std::string, std::string> lists = {{"short_factor", "1,2"}, {"long_factor", "1,8"}};
  const auto divisor = [&lists](std::int64_t length) {
    return default_inv_freq(4, 1e4)[1] / frequencies_of("longrope", 32, {4, 1e4, 4096}, lists, length).inv_freq[1];
  };
  CHECK(divisor(4095) == 2);
  CHECK(divisor(4096) == 2);
  CHECK(divisor(4097) == 8);
}

TEST_CASE("T-43: longrope by configured context takes the long list for a short prompt", "[rope][defects]") {
  std::map<std::string, std::string> options = {{"short_factor", "1,2"}, {"long_factor", "1,8"}};
  const auto list = [&options] { return frequencies_of("longrope", 32, {4, 1e4, 4096}, options, 10).inv_freq; };
  const std::vector<double> by_length = list();
  options["switch"] = "configured";
  options["configured_context"] = "131072";
  CHECK(by_length[1] / list()[1] == 4);
}

TEST_CASE("T-65: slopes of a shard of the heads are a slice of all slopes", "[rope][defects]") {
  const std::vector<double> all = alibi_slopes(112);
  CHECK(alibi_slopes(56) != std::vector<double>(all.begin(), all.begin() + 56));
  CHECK_THAT(*std::min_element(all.begin(), all.end()), WithinAbs(std::exp2(-8), 1e-15));
}

TEST_CASE("T-67: ALiBi relative to the first key and to the query give one softmax", "[rope][defects]") {
  const double slope = alibi_slopes(12)[7];
  const int n = 20;
  double relative_sum = 0;
  double absolute_sum = 0;
  for (int k = 0; k < n; ++k) {
    relative_sum += std::exp(-slope * (n - 1 - k));
    absolute_sum += std::exp(slope * k);
  }
  for (int k = 0; k < n; ++k) {
    CHECK_THAT(std::exp(-slope * (n - 1 - k)) / relative_sum, WithinAbs(std::exp(slope * k) / absolute_sum, 1e-14));
  }
}

}  // namespace
}  // namespace fathom::rope
