// What every remap of positions must keep to, and what makes each of them that remap.

#include "harness/rope/position_remap.h"

#include <cmath>

#include "harness/core/error.h"
#include "tests/support/catch.h"

namespace fathom::rope {
namespace {

std::unique_ptr<PositionRemap> make_remap(const std::string& name, std::int64_t original_context,
                                          const std::map<std::string, std::string>& options = {}) {
  return position_remaps().at(name).make(original_context, OptionSource("[test]", options));
}

/// Calls check(name, remap, original context) for every remap with the options it derives by itself.
template <typename Check>
void for_each_remap(Check check) {
  for (const PositionRemapEntry& entry : position_remaps().entries()) {
    for (const std::int64_t original_context : {16, 64}) {
      INFO(entry.name << " original context " << original_context);
      check(*entry.make(original_context, {}), original_context);
    }
  }
}

TEST_CASE("every remap: regions are in range and positions are finite and not negative", "[rope][remap]") {
  for_each_remap([](const PositionRemap& remap, std::int64_t original_context) {
    REQUIRE(remap.n_regions() >= 1);
    for (std::int64_t q = 0; q < 4 * original_context; ++q) {
      for (std::int64_t k = 0; k <= q; ++k) {
        const std::int64_t region = remap.region(q, k);
        REQUIRE(region >= 0);
        REQUIRE(region < remap.n_regions());
        const double at_q = remap.query_position(q, region);
        const double at_k = remap.key_position(k, region);
        REQUIRE(std::isfinite(at_q));
        REQUIRE(std::isfinite(at_k));
        REQUIRE(at_k >= 0);
        REQUIRE(at_q >= at_k);
        REQUIRE(relative_position(remap, q, k) == at_q - at_k);
      }
    }
  });
}

TEST_CASE("every remap: a token stands at distance 0 from itself and 1 from the one before", "[rope][remap]") {
  for_each_remap([](const PositionRemap& remap, std::int64_t original_context) {
    for (std::int64_t q = 1; q < 8 * original_context; ++q) {
      CHECK(remap.region(q, q) == 0);
      CHECK(relative_position(remap, q, q) == 0);
      CHECK(relative_position(remap, q, q - 1) == 1);
    }
  });
}

TEST_CASE("every remap: distances shrink; at most rounding to groups adds one", "[rope][remap]") {
  for_each_remap([](const PositionRemap& remap, std::int64_t original_context) {
    for (std::int64_t q = 0; q < 4 * original_context; ++q) {
      for (std::int64_t k = 0; k <= q; ++k) REQUIRE(relative_position(remap, q, k) < static_cast<double>(q - k) + 1);
    }
  });
}

TEST_CASE("every remap: within the default reach all distances are those of training", "[rope][remap]") {
  for_each_remap([](const PositionRemap& remap, std::int64_t original_context) {
    for (std::int64_t q = 0; q < 4 * original_context; ++q) {
      CHECK(relative_position(remap, q, 0) < static_cast<double>(original_context));
    }
  });
}

TEST_CASE("every remap: equal options give equal positions and texts", "[rope][remap]") {
  for (const PositionRemapEntry& entry : position_remaps().entries()) {
    INFO(entry.name);
    CHECK(entry.version >= 1);
    CHECK(!entry.summary.empty());
    CHECK(!entry.source.empty());
    const auto a = entry.make(64, {});
    const auto b = entry.make(64, {});
    CHECK(a->canonical_options() == b->canonical_options());
    CHECK_THAT(a->canonical_options(), !Catch::Matchers::ContainsSubstring("=auto"));
    CHECK(relative_position(*a, 300, 7) == relative_position(*b, 300, 7));
  }
}

TEST_CASE("self_extend: the remap reaches (L - window) * group + window tokens", "[rope][remap][self_extend]") {
  const auto remap = make_remap("self_extend", 64, {{"group", "4"}, {"window", "16"}});
  const std::int64_t reach = (64 - 16) * 4 + 16;
  CHECK(relative_position(*remap, reach - 1, 0) == 63);
  CHECK(relative_position(*remap, reach + 3, 0) == 64);
}

TEST_CASE("dual_chunk: defaults are three quarters and an eighth of the original context",
          "[rope][remap][dual_chunk]") {
  CHECK(make_remap("dual_chunk", 4096)->canonical_options() == "chunk=2560;pretrain=3072;local=512;clamp=paper");
  CHECK(make_remap("dual_chunk", 4096, {{"chunk", "3000"}})->canonical_options() ==
        "chunk=3000;pretrain=3072;local=72;clamp=paper");
}

TEST_CASE("dual_chunk: the released code's largest query position is one above the paper's",
          "[rope][remap][dual_chunk]") {
  const std::map<std::string, std::string> sizes = {{"chunk", "6"}, {"pretrain", "10"}};
  auto released = sizes;
  released["clamp"] = "released";
  const auto paper = make_remap("dual_chunk", 0, sizes);
  const auto code = make_remap("dual_chunk", 0, released);
  CHECK(relative_position(*paper, 11, 0) == 9);
  CHECK(relative_position(*code, 11, 0) == 10);
  CHECK(relative_position(*paper, 100, 0) == 9);
  CHECK(relative_position(*code, 100, 0) == 10);
  CHECK(relative_position(*code, 8, 3) == 5);
}

TEST_CASE("leaky_rerope: beyond the window a step counts 1/k", "[rope][remap][leaky_rerope]") {
  const auto remap = make_remap("leaky_rerope", 64, {{"k", "8"}});
  CHECK(relative_position(*remap, 31, 0) == 31);
  CHECK(relative_position(*remap, 32, 0) == 32);
  CHECK(relative_position(*remap, 40, 0) == 33);
}

TEST_CASE("remaps: sizes that do not fit together are refused", "[rope][remap][errors]") {
  const auto message = [](const std::string& name, const std::map<std::string, std::string>& options) -> std::string {
    try {
      make_remap(name, 64, options);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no ConfigError";
  };
  CHECK(message("dual_chunk", {{"chunk", "6"}, {"pretrain", "10"}, {"local", "5"}}) ==
        "remap dual_chunk: chunk = 6 and local = 5 must be at least 1 and add up to pretrain = 10; give two of the "
        "three");
  CHECK(message("dual_chunk", {{"chunk", "10"}, {"pretrain", "10"}}).find("local = 0") != std::string::npos);
  CHECK(message("self_extend", {{"group", "0"}}).find("group = 0 is outside") != std::string::npos);
  CHECK(message("leaky_rerope", {{"windwo", "4"}}).find("did you mean 'window'?") != std::string::npos);
}

}  // namespace
}  // namespace fathom::rope
