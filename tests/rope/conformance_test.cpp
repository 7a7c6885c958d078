// What every scaling method must keep to; a new line in scalings.inc is tested here without new code.

#include <cmath>

#include "harness/rope/rope_scaling.h"
#include "tests/support/catch.h"

namespace fathom::rope {
namespace {

constexpr std::int64_t kOriginalContext = 4096;
const std::vector<std::int64_t> kLengths = {1, 2, 4095, 4096, 4097, 8192, 131072, 1048576};

/// Methods whose lists come from a file need some: mild ones, not decreasing so fast that the order of channels turns.
OptionSource conformance_options(const RopeScalingEntry& entry, std::int64_t n_channels) {
  std::map<std::string, std::string> values;
  for (const OptionDescription& option : entry.describe()) {
    if (option.type != "list") continue;
    std::string text;
    for (std::int64_t i = 0; i < n_channels; ++i) {
      text += i == 0 ? "1" : (option.name == "long_factor" ? ",2" : ",1");
    }
    values[option.name] = text;
  }
  return OptionSource("[conformance]", values);
}

TEST_CASE("every scaling: frequencies are positive, finite and decreasing", "[rope][conformance]") {
  for (const RopeScalingEntry& entry : scalings().entries()) {
    for (const std::int64_t rotary_dim : {4, 16, 64, 128}) {
      for (const double base : {10000.0, 1e6}) {
        const RopeGeometry geometry{rotary_dim, base, kOriginalContext};
        const auto scaling = entry.make(4, conformance_options(entry, rotary_dim / 2));
        for (const std::int64_t length : kLengths) {
          INFO(entry.name << " rotary_dim " << rotary_dim << " base " << base << " length " << length);
          const RopeFrequencies got = scaling->frequencies(geometry, length);
          REQUIRE(got.inv_freq.size() == static_cast<std::size_t>(rotary_dim / 2));
          for (std::size_t i = 0; i < got.inv_freq.size(); ++i) {
            REQUIRE(std::isfinite(got.inv_freq[i]));
            REQUIRE(got.inv_freq[i] > 0);
            if (i > 0) REQUIRE(got.inv_freq[i] < got.inv_freq[i - 1]);
          }
          CHECK(got.attention_factor >= 1);
          CHECK(got.softmax_scale_factor >= 1);
        }
      }
    }
  }
}

TEST_CASE("every scaling: factor 1 is the identity up to the original context", "[rope][conformance]") {
  const RopeGeometry geometry{64, 10000, kOriginalContext};
  const auto plain = default_inv_freq(64, 10000);
  for (const RopeScalingEntry& entry : scalings().entries()) {
    INFO(entry.name);
    const RopeFrequencies got = entry.make(1, conformance_options(entry, 32))->frequencies(geometry, kOriginalContext);
    // A blend of theta and theta / 1 may round the last bit.
    for (std::size_t i = 0; i < plain.size(); ++i) {
      CHECK_THAT(got.inv_freq[i] / plain[i], Catch::Matchers::WithinAbs(1.0, 4e-16));
    }
    CHECK(got.attention_factor == 1.0);
    CHECK(got.softmax_scale_factor == 1.0);
  }
}

TEST_CASE("every scaling: only a method that says so depends on the length", "[rope][conformance]") {
  const RopeGeometry geometry{64, 10000, kOriginalContext};
  int dependent = 0;
  for (const RopeScalingEntry& entry : scalings().entries()) {
    INFO(entry.name);
    const auto scaling = entry.make(4, conformance_options(entry, 32));
    const auto first = scaling->frequencies(geometry, 1).inv_freq;
    bool changed = false;
    for (const std::int64_t length : kLengths)
      changed = changed || scaling->frequencies(geometry, length).inv_freq != first;
    CHECK(changed == scaling->depends_on_length());
    CHECK(scaling->constant_up_to(geometry).has_value() == scaling->depends_on_length());
    if (const auto limit = scaling->constant_up_to(geometry)) {
      CHECK(scaling->frequencies(geometry, *limit).inv_freq == first);
      CHECK(scaling->frequencies(geometry, *limit + 1).inv_freq != first);
      ++dependent;
    }
  }
  CHECK(dependent == 2);
}

TEST_CASE("every scaling: the same question gives the same bits", "[rope][conformance]") {
  const RopeGeometry geometry{64, 10000, kOriginalContext};
  for (const RopeScalingEntry& entry : scalings().entries()) {
    INFO(entry.name);
    const auto a = entry.make(4, conformance_options(entry, 32));
    const auto b = entry.make(4, conformance_options(entry, 32));
    (void)b->frequencies(geometry, 100000);
    CHECK(a->frequencies(geometry, 8192).inv_freq == b->frequencies(geometry, 8192).inv_freq);
    CHECK(a->canonical_options() == b->canonical_options());
  }
}

TEST_CASE("every scaling: entries say what they are", "[rope][conformance]") {
  for (const RopeScalingEntry& entry : scalings().entries()) {
    INFO(entry.name);
    CHECK(entry.version >= 1);
    CHECK(!entry.summary.empty());
    CHECK(!entry.source.empty());
  }
  CHECK(scalings().names() ==
        std::vector<std::string>{"divisors", "dynamic", "linear", "llama3", "longrope", "none", "ntk", "yarn"});
}

}  // namespace
}  // namespace fathom::rope
