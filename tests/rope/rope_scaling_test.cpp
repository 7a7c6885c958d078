#include "harness/rope/rope_scaling.h"

#include <cmath>
#include <string>

#include "harness/core/error.h"
#include "tests/support/catch.h"

namespace fathom::rope {
namespace {

TEST_CASE("ntk: channel 0 keeps its frequency and the last is divided by the whole factor", "[rope][ntk]") {
  const RopeGeometry geometry{128, 10000, 4096};
  const auto plain = default_inv_freq(128, 10000);
  const auto scaled = scalings().at("ntk").make(8, {})->frequencies(geometry, 1).inv_freq;
  CHECK(scaled.front() == 1.0);
  CHECK_THAT(scaled.back() / plain.back(), Catch::Matchers::WithinAbs(1.0 / 8, 1e-14));
}

TEST_CASE("dynamic: the first Qwen's base grows in steps that double", "[rope][dynamic]") {
  const RopeGeometry geometry{128, 10000, 2048};
  const auto stepped = scalings().at("dynamic").make(1, OptionSource("[test]", {{"alpha", "stepped"}}));
  const auto plain_of = [](double alpha) { return default_inv_freq(128, 10000 * std::pow(alpha, 128.0 / 126)); };
  // alpha = 2^(ceil(log2(L / L0)) + 1) - 1
  CHECK(stepped->frequencies(geometry, 2048).inv_freq == default_inv_freq(128, 10000));
  CHECK(stepped->frequencies(geometry, 2049).inv_freq == plain_of(3));
  CHECK(stepped->frequencies(geometry, 4096).inv_freq == plain_of(3));
  CHECK(stepped->frequencies(geometry, 4097).inv_freq == plain_of(7));
  CHECK(stepped->frequencies(geometry, 16384).inv_freq == plain_of(15));
}

TEST_CASE("yarn: dynamic takes its factor from the current length", "[rope][yarn]") {
  const RopeGeometry geometry{128, 10000, 4096};
  const auto dynamic = scalings().at("yarn").make(32, OptionSource("[test]", {{"dynamic", "on"}}));
  CHECK(dynamic->constant_up_to(geometry) == 4096);
  CHECK(dynamic->frequencies(geometry, 4096).attention_factor == 1.0);
  for (const double s : {1.5, 4.0}) {
    const auto fixed = scalings().at("yarn").make(s, {})->frequencies(geometry, 1);
    const auto now = dynamic->frequencies(geometry, static_cast<std::int64_t>(s * 4096));
    CHECK(now.inv_freq == fixed.inv_freq);
    CHECK(now.attention_factor == fixed.attention_factor);
  }
}

TEST_CASE("longrope: a configured context decides for every length", "[rope][longrope]") {
  const RopeGeometry geometry{4, 10000, 4096};
  std::map<std::string, std::string> options = {
      {"short_factor", "1,2"}, {"long_factor", "1,8"}, {"switch", "configured"}, {"configured_context", "4097"}};
  const auto last = [&](std::int64_t seq_len) {
    return scalings()
        .at("longrope")
        .make(32, OptionSource("[test]", options))
        ->frequencies(geometry, seq_len)
        .inv_freq[1];
  };
  CHECK(last(1) == 0.01 / 8);
  CHECK(last(100000) == 0.01 / 8);
  options["configured_context"] = "4096";
  CHECK(last(100000) == 0.01 / 2);
  options["configured_context"] = "auto";  // 32 * 4096
  CHECK(last(1) == 0.01 / 8);
  options["switch"] = "actual";
  CHECK(last(4096) == 0.01 / 2);
  CHECK(last(4097) == 0.01 / 8);
}

TEST_CASE("longrope: each list may bring its own multiplier", "[rope][longrope]") {
  const OptionSource options(
      "[test]", {{"short_factor", "1,1"}, {"long_factor", "1,1"}, {"short_mscale", "1.25"}, {"long_mscale", "1.5"}});
  const auto longrope = scalings().at("longrope").make(64, options);
  CHECK(longrope->depends_on_length());
  CHECK(longrope->frequencies({4, 10000, 2048}, 2048).attention_factor == 1.25);
  CHECK(longrope->frequencies({4, 10000, 2048}, 2049).attention_factor == 1.5);
}

TEST_CASE("proportional: the slowest pairs stand still, the others keep the whole head's exponent",
          "[rope][proportional]") {
  const OptionSource half("[test]", {{"share", "0.5"}});
  const auto got = scalings().at("proportional").make(2, half)->frequencies({8, 10000, 0}, 1).inv_freq;
  const auto plain = default_inv_freq(8, 10000);
  CHECK(got == std::vector<double>{plain[0] / 2, plain[1] / 2, 0, 0});
}

TEST_CASE("yarn: the coefficient of the attention factor is a knob", "[rope][yarn]") {
  const OptionSource options("[test]", {{"coefficient", "0.07"}});
  const auto got = scalings().at("yarn").make(16, options)->frequencies({64, 10000, 4096}, 1);
  CHECK_THAT(got.attention_factor, Catch::Matchers::WithinAbs(0.07 * std::log(16.0) + 1, 1e-14));
}

TEST_CASE("yarn: the clamp bound matters only where the ramp ends beyond the last channel", "[rope][yarn]") {
  const OptionSource by_channels("[test]", {{"clamp", "channels"}});
  const auto usual = scalings().at("yarn").make(8, {});
  const auto clamped = scalings().at("yarn").make(8, by_channels);
  CHECK(usual->frequencies({64, 10000, 4096}, 1).inv_freq == clamped->frequencies({64, 10000, 4096}, 1).inv_freq);
  CHECK(usual->frequencies({64, 10000, 131072}, 1).inv_freq != clamped->frequencies({64, 10000, 131072}, 1).inv_freq);
}

TEST_CASE("divisors: frequencies are divided channel by channel", "[rope][divisors]") {
  const OptionSource options("[test]", {{"divisors", "1,2,4,8"}});
  const auto got = scalings().at("divisors").make(1, options)->frequencies({8, 16, 0}, 1).inv_freq;
  CHECK(got == std::vector<double>{1.0, 0.25, 0.0625, 0.015625});  // 16^(-2i/8) = 2^-i
}

template <typename Action>
std::string config_error(Action action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no ConfigError";
}

TEST_CASE("rope: impossible geometry is refused with the value", "[rope][errors]") {
  CHECK(config_error([] { default_inv_freq(7, 10000); }) == "rope: rotary_dim = 7 must be an even number above 0");
  CHECK(config_error([] { default_inv_freq(0, 10000); }) == "rope: rotary_dim = 0 must be an even number above 0");
  CHECK(config_error([] { default_inv_freq(8, 0); }) == "rope: base = 0 must be a finite number above 0");
}

TEST_CASE("rope: methods name what is wrong with factor, context and options", "[rope][errors]") {
  const Registry<RopeScalingEntry>& all = scalings();
  CHECK(config_error([&] { all.at("linear").make(0.5, {}); }) ==
        "scaling linear: factor = 0.5 must be a finite number of at least 1");
  CHECK(config_error([&] {
          all.at("yarn").make(2, {})->frequencies({64, 10000, 0}, 1);
        }).find("scaling yarn: original_context = 0 must be above 0") == 0);
  CHECK(config_error([&] {
          all.at("ntk").make(2, {})->frequencies({2, 10000, 0}, 1);
        }).find("scaling ntk: rotary_dim = 2") == 0);
  CHECK(config_error([&] {
          all.at("yarn").make(2, OptionSource("[model.scaling]", {{"beta_fats", "1"}}));
        }).find("did you mean 'beta_fast'?") != std::string::npos);
  CHECK(config_error([&] {
          all.at("none").make(1, OptionSource("[model.scaling]", {{"beta_fast", "1"}}));
        }).find("it takes no options") != std::string::npos);
  CHECK(config_error([&] {
          all.at("yarn").make(2, OptionSource("[x]", {{"beta_fast", "0.5"}}));
        }) == "scaling yarn: beta_fast must not be below beta_slow");
  CHECK(config_error([&] { all.at("longrope").make(2, {}); }) ==
        "scaling longrope: short_factor and long_factor are required, one number per channel");
  const OptionSource short_lists("[x]", {{"short_factor", "1,2"}, {"long_factor", "1,2"}});
  CHECK(config_error([&] {
          all.at("longrope").make(2, short_lists)->frequencies({8, 10000, 16}, 1);
        }) == "scaling longrope: short_factor has 2 entries; rotary_dim = 8 needs 4");
  CHECK(config_error([&] {
          all.at("divisors").make(1, OptionSource("[x]", {{"divisors", "1,-2"}}));
        }) == "scaling divisors: divisors holds '-2', which is not a number above 0");
  CHECK(config_error([&] { all.at("yarnn"); }).find("did you mean 'yarn'?") != std::string::npos);
}

}  // namespace
}  // namespace fathom::rope
