// What every scaling method must keep to, with every switch of its options; a new line in scalings.inc is tested here
// without new code.

#include <cmath>

#include "harness/core/text_util.h"
#include "harness/rope/rope_scaling.h"
#include "tests/support/catch.h"

namespace fathom::rope {
namespace {

constexpr std::int64_t kOriginalContext = 4096;
const std::vector<std::int64_t> kLengths = {1, 2, 4095, 4096, 4097, 8192, 131072, 1048576};

using Options = std::map<std::string, std::string>;

/// Methods whose lists come from a file need some: mild ones, not decreasing so fast that the order of channels turns.
Options needed_options(const RopeScalingEntry& entry, std::int64_t n_channels) {
  Options options;
  for (const OptionDescription& option : entry.describe()) {
    if (option.type != "list") continue;
    std::string text;
    for (std::int64_t i = 0; i < n_channels; ++i) {
      text += i == 0 ? "1" : (option.name == "long_factor" ? ",2" : ",1");
    }
    options[option.name] = text;
  }
  return options;
}

/// The default settings, and the same with each on/off option and each choice set to each of its words.
std::vector<Options> option_variants(const RopeScalingEntry& entry, std::int64_t n_channels) {
  const Options needed = needed_options(entry, n_channels);
  std::vector<Options> variants = {needed};
  for (const OptionDescription& option : entry.describe()) {
    if (option.type != "on/off" && option.type != "choice") continue;
    for (const std::string& word : split_list(option.allowed)) {
      if (word == option.default_value) continue;
      variants.push_back(needed);
      variants.back()[option.name] = word;
    }
  }
  return variants;
}

std::string text_of(const Options& options) {
  std::string text;
  for (const auto& [name, value] : options) text += " " + name + " = " + value.substr(0, 20);
  return text;
}

/// Calls check(entry, options) for every method and variant.
template <typename Check>
void for_each_scaling(std::int64_t rotary_dim, Check check) {
  for (const RopeScalingEntry& entry : scalings().entries()) {
    for (const Options& options : option_variants(entry, rotary_dim / 2)) {
      INFO(entry.name << text_of(options) << " rotary_dim " << rotary_dim);
      check(entry, OptionSource("[conformance]", options));
    }
  }
}

void check_frequencies(const RopeFrequencies& got, std::int64_t rotary_dim) {
  REQUIRE(got.inv_freq.size() == static_cast<std::size_t>(rotary_dim / 2));
  for (std::size_t i = 0; i < got.inv_freq.size(); ++i) {
    REQUIRE(std::isfinite(got.inv_freq[i]));
    REQUIRE(got.inv_freq[i] >= 0);  // 0: a pair that stands still
    if (i > 0) REQUIRE(got.inv_freq[i] <= got.inv_freq[i - 1]);
  }
  CHECK(got.attention_factor >= 1);
  CHECK(got.softmax_scale_factor >= 1);
}

TEST_CASE("every scaling: frequencies are finite, not negative and never increasing", "[rope][conformance]") {
  for (const std::int64_t rotary_dim : {4, 16, 64, 128}) {
    for (const double base : {10000.0, 1e6}) {
      const RopeGeometry geometry{rotary_dim, base, kOriginalContext};
      for_each_scaling(rotary_dim, [&](const RopeScalingEntry& entry, const OptionSource& options) {
        const auto scaling = entry.make(4, options);
        for (const std::int64_t length : kLengths) {
          INFO("base " << base << " length " << length);
          check_frequencies(scaling->frequencies(geometry, length), rotary_dim);
        }
      });
    }
  }
}

TEST_CASE("every scaling: factor 1 is the identity up to the original context", "[rope][conformance]") {
  const RopeGeometry geometry{64, 10000, kOriginalContext};
  const auto plain = default_inv_freq(64, 10000);
  for_each_scaling(64, [&](const RopeScalingEntry& entry, const OptionSource& options) {
    const RopeFrequencies got = entry.make(1, options)->frequencies(geometry, kOriginalContext);
    // A blend of theta and theta / 1 may round the last bit.
    for (std::size_t i = 0; i < plain.size(); ++i) {
      CHECK_THAT(got.inv_freq[i] / plain[i], Catch::Matchers::WithinAbs(1.0, 4e-16));
    }
    CHECK(got.attention_factor == 1.0);
    CHECK(got.softmax_scale_factor == 1.0);
  });
}

TEST_CASE("every scaling: only a method that says so depends on the length", "[rope][conformance]") {
  const RopeGeometry geometry{64, 10000, kOriginalContext};
  for_each_scaling(64, [&](const RopeScalingEntry& entry, const OptionSource& options) {
    const auto scaling = entry.make(4, options);
    const RopeFrequencies first = scaling->frequencies(geometry, 1);
    const auto same = [&](std::int64_t length) {
      const RopeFrequencies now = scaling->frequencies(geometry, length);
      return now.inv_freq == first.inv_freq && now.attention_factor == first.attention_factor;
    };
    bool changed = false;
    for (const std::int64_t length : kLengths) changed = changed || !same(length);
    CHECK(changed == scaling->depends_on_length());
    const auto limit = scaling->constant_up_to(geometry);
    REQUIRE(limit.has_value() == scaling->depends_on_length());
    if (!limit) return;
    CHECK(same(*limit));
    CHECK_FALSE(same(*limit + 1));
  });
}

TEST_CASE("every scaling: the same question gives the same bits", "[rope][conformance]") {
  const RopeGeometry geometry{64, 10000, kOriginalContext};
  for_each_scaling(64, [&](const RopeScalingEntry& entry, const OptionSource& options) {
    const auto a = entry.make(4, options);
    const auto b = entry.make(4, options);
    (void)b->frequencies(geometry, 100000);
    CHECK(a->frequencies(geometry, 8192).inv_freq == b->frequencies(geometry, 8192).inv_freq);
    CHECK(a->canonical_options() == b->canonical_options());
  });
}

TEST_CASE("every scaling: entries say what they are, and their options are in the canonical text",
          "[rope][conformance]") {
  for (const RopeScalingEntry& entry : scalings().entries()) {
    INFO(entry.name);
    CHECK(entry.version >= 1);
    CHECK(!entry.summary.empty());
    CHECK(!entry.source.empty());
    const auto scaling = entry.make(4, OptionSource("[conformance]", needed_options(entry, 32)));
    for (const OptionDescription& option : entry.describe()) {
      CHECK(!option.help.empty());
      CHECK_THAT(";" + scaling->canonical_options(), Catch::Matchers::ContainsSubstring(";" + option.name + "="));
    }
  }
}

}  // namespace
}  // namespace fathom::rope
