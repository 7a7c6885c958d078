#include "harness/rope/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/shared_dir.h"

namespace fathom::rope {
namespace {

using nlohmann::json;

/// Largest |a - b| / |b|.
double worst_relative(const std::vector<double>& values, const std::vector<double>& expected) {
  REQUIRE(values.size() == expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    worst = std::max(worst, std::abs(values[i] - expected[i]) / std::abs(expected[i]));
  }
  return worst;
}

std::string join_numbers(const json& list) {
  std::vector<std::string> parts;
  for (const json& value : list) parts.push_back(format_double(value.get<double>()));
  return join(parts, ",");
}

RopeGeometry geometry_of(const json& c) {
  RopeGeometry geometry;
  geometry.rotary_dim =
      c.contains("rotary_dim") ? c["rotary_dim"].get<std::int64_t>() : c["head_dim"].get<std::int64_t>();
  geometry.base = c["rope_theta"];
  if (c.contains("original_max_position_embeddings")) {
    geometry.original_context = c["original_max_position_embeddings"];
  } else if (c.contains("max_position_embeddings")) {
    geometry.original_context = c["max_position_embeddings"];
  }
  return geometry;
}

/// What a configuration reader would pass on: the method's knobs as text.
OptionSource options_of(const json& c, const json& golden) {
  std::map<std::string, std::string> values;
  for (const char* key :
       {"beta_fast", "beta_slow", "mscale", "mscale_all_dim", "low_freq_factor", "high_freq_factor"}) {
    if (c.contains(key)) values[key] = format_double(c[key].get<double>());
  }
  if (c.contains("truncate")) values["truncate"] = c["truncate"].get<bool>() ? "on" : "off";
  if (c.contains("note") && c["note"].get<std::string>().rfind("explicit attention_factor", 0) == 0) {
    values["attention_factor"] = format_double(c["attention_factor"].get<double>());
  }
  if (c["rope_type"] == "longrope") {
    const json& lists = golden["factors"][c["model"].get<std::string>()];
    values["short_factor"] = join_numbers(lists["short_factor"]);
    values["long_factor"] = join_numbers(lists["long_factor"]);
  }
  return OptionSource("[test]", values);
}

double factor_of(const json& c) {
  if (c.contains("factor")) return c["factor"];
  if (c.contains("alpha")) return c["alpha"];
  if (c.contains("max_position_embeddings") && c.contains("original_max_position_embeddings")) {
    return c["max_position_embeddings"].get<double>() / c["original_max_position_embeddings"].get<double>();
  }
  return 1;
}

/// Runs every case of a golden file; tolerances as its specification says: 1e-12 against the double closed form, 2e-6
/// against the float32 reference.
void check_golden(const json& golden, const std::string& method) {
  std::size_t run = 0;
  std::size_t with_double = 0;
  for (const json& c : golden["cases"]) {
    INFO("case " << run << " of " << method);
    const auto scaling = scalings().at(method).make(factor_of(c), options_of(c, golden));
    const std::int64_t seq_len =
        c.contains("seq_len") && !c["seq_len"].is_null() ? c["seq_len"].get<std::int64_t>() : 1;
    const RopeFrequencies got = scaling->frequencies(geometry_of(c), seq_len);
    CHECK(worst_relative(got.inv_freq, c["inv_freq_f32"].get<std::vector<double>>()) < 2e-6);
    if (c.contains("inv_freq_f64")) {
      CHECK(worst_relative(got.inv_freq, c["inv_freq_f64"].get<std::vector<double>>()) < 1e-12);
      ++with_double;
    }
    if (c.contains("gguf_rope_freqs_factor_f64")) {
      const auto divisors = c["gguf_rope_freqs_factor_f64"].get<std::vector<double>>();
      std::vector<double> plain = default_inv_freq(geometry_of(c).rotary_dim, geometry_of(c).base);
      for (std::size_t i = 0; i < plain.size(); ++i) plain[i] /= divisors[i];
      CHECK(worst_relative(got.inv_freq, plain) < 1e-12);
    }
    CHECK(std::abs(got.attention_factor - c["attention_factor"].get<double>()) < 1e-12);
    CHECK(got.softmax_scale_factor == 1.0);
    ++run;
  }
  CHECK(run == golden["cases"].size());
  CHECK(run > 0);
  CHECK(with_double > 0);
}

TEST_CASE("rope: plain frequencies equal the golden values", "[rope][none]") {
  check_golden(test::read_golden("rope_default.json"), "none");
}

TEST_CASE("linear: frequencies equal the golden values", "[rope][linear]") {
  check_golden(test::read_golden("rope_linear.json"), "linear");
}

TEST_CASE("ntk: frequencies equal the golden values", "[rope][ntk]") {
  check_golden(test::read_golden("rope_ntk_static.json"), "ntk");
}

TEST_CASE("dynamic: frequencies equal the golden values at every length", "[rope][dynamic]") {
  check_golden(test::read_golden("rope_dynamic_ntk_subset.json"), "dynamic");
}

TEST_CASE("dynamic: frequencies equal every case of the full reference file", "[rope][dynamic]") {
  FATHOM_NEEDS_SHARED("golden/rope_dynamic_ntk.json");
  check_golden(test::read_json_file(test::shared_path("golden/rope_dynamic_ntk.json")), "dynamic");
}

TEST_CASE("yarn: frequencies and attention factor equal the golden values", "[rope][yarn]") {
  check_golden(test::read_golden("rope_yarn_subset.json"), "yarn");
}

TEST_CASE("yarn: every case of the full reference file", "[rope][yarn]") {
  FATHOM_NEEDS_SHARED("golden/rope_yarn.json");
  check_golden(test::read_json_file(test::shared_path("golden/rope_yarn.json")), "yarn");
}

TEST_CASE("llama3: frequencies equal the golden values", "[rope][llama3]") {
  check_golden(test::read_golden("rope_llama3.json"), "llama3");
}

TEST_CASE("llama3: the bands hold the golden number of channels", "[rope][llama3]") {
  const json golden = test::read_golden("rope_llama3.json");
  for (const json& c : golden["cases"]) {
    const double s = c["factor"];
    const auto plain = default_inv_freq(c["head_dim"], c["rope_theta"]);
    const auto scaled = scalings().at("llama3").make(s, options_of(c, golden))->frequencies(geometry_of(c), 1).inv_freq;
    int unchanged = 0;
    int divided = 0;
    for (std::size_t i = 0; i < plain.size(); ++i) {
      unchanged += scaled[i] == plain[i] ? 1 : 0;
      divided += scaled[i] == plain[i] / s ? 1 : 0;
    }
    CHECK(unchanged == c["unchanged"].get<int>());
    CHECK(divided == c["divided"].get<int>());
  }
}

TEST_CASE("longrope: frequencies equal the golden values on both sides of the original context", "[rope][longrope]") {
  check_golden(test::read_golden("rope_longrope.json"), "longrope");
}

TEST_CASE("longrope: the attention factor follows the golden table", "[rope][longrope]") {
  const json golden = test::read_golden("rope_longrope.json");
  CHECK(golden["attention_factor_table"].size() == 5);
  for (const json& c : golden["attention_factor_table"]) {
    const OptionSource lists("[test]", {{"short_factor", "1,1"}, {"long_factor", "1,2"}});
    const RopeGeometry geometry{4, 10000, c["original_max_position_embeddings"]};
    const auto got = scalings().at("longrope").make(c["factor"], lists)->frequencies(geometry, 1);
    CHECK_THAT(got.attention_factor, Catch::Matchers::WithinAbs(c["attention_factor"].get<double>(), 1e-12));
  }
}

TEST_CASE("ntk: channel 0 keeps its frequency and the last is divided by the whole factor", "[rope][ntk]") {
  const RopeGeometry geometry{128, 10000, 4096};
  const auto plain = default_inv_freq(128, 10000);
  const auto scaled = scalings().at("ntk").make(8, {})->frequencies(geometry, 1).inv_freq;
  CHECK(scaled.front() == 1.0);
  CHECK_THAT(scaled.back() / plain.back(), Catch::Matchers::WithinAbs(1.0 / 8, 1e-14));
}

TEST_CASE("dynamic: the list equals plain RoPE to the bit up to the trained length", "[rope][dynamic]") {
  const RopeGeometry geometry{64, 10000, 4096};
  const auto dynamic = scalings().at("dynamic").make(4, {});
  const auto plain = default_inv_freq(64, 10000);
  CHECK(dynamic->frequencies(geometry, 1).inv_freq == plain);
  CHECK(dynamic->frequencies(geometry, 4096).inv_freq == plain);
  CHECK(dynamic->frequencies(geometry, 4097).inv_freq != plain);
  CHECK(dynamic->constant_up_to(geometry) == 4096);
}

TEST_CASE("dynamic: the order in which lengths are asked for does not matter", "[rope][dynamic]") {
  const RopeGeometry geometry{64, 10000, 4096};
  const auto up = scalings().at("dynamic").make(2, {});
  const auto down = scalings().at("dynamic").make(2, {});
  const auto up_5k = up->frequencies(geometry, 5000).inv_freq;
  const auto up_8k = up->frequencies(geometry, 8192).inv_freq;
  CHECK(down->frequencies(geometry, 8192).inv_freq == up_8k);
  CHECK(down->frequencies(geometry, 5000).inv_freq == up_5k);
}

TEST_CASE("yarn: the paper's printed ramp equals its golden list and differs from the code's", "[rope][yarn]") {
  const json variant = test::read_golden("rope_yarn_subset.json")["paper_variant"];
  std::size_t run = 0;
  for (const json& c : variant["items"]) {
    const RopeGeometry geometry = geometry_of(c);
    const OptionSource by_turns("[test]", {{"ramp", "turns"}});
    const auto paper = scalings().at("yarn").make(c["factor"], by_turns)->frequencies(geometry, 1).inv_freq;
    CHECK(worst_relative(paper, c["inv_freq_f64_paper"].get<std::vector<double>>()) < 1e-12);
    const auto code = scalings().at("yarn").make(c["factor"], {})->frequencies(geometry, 1).inv_freq;
    CHECK_THAT(worst_relative(paper, code), Catch::Matchers::WithinAbs(c["max_rel_diff_to_code"].get<double>(), 1e-3));
    ++run;
  }
  CHECK(run == variant["items"].size());
  CHECK(run == 4);
}

TEST_CASE("yarn: DeepSeek's softmax scale equals the golden value", "[rope][yarn]") {
  const json golden = test::read_golden("rope_yarn_subset.json");
  CHECK(golden["deepseek_softmax_scale"].size() == 3);
  for (const json& c : golden["deepseek_softmax_scale"]) {
    const std::string k = format_double(c["mscale_all_dim"].get<double>());
    const OptionSource options("[test]", {{"mscale", k}, {"mscale_all_dim", k}, {"softmax_mscale", "on"}});
    const auto got = scalings().at("yarn").make(c["factor"], options)->frequencies({64, 10000, 4096}, 1);
    CHECK_THAT(got.attention_factor, Catch::Matchers::WithinAbs(1.0, 1e-12));
    const double scale = got.softmax_scale_factor / std::sqrt(c["qk_head_dim"].get<double>());
    CHECK_THAT(scale, Catch::Matchers::WithinAbs(c["scale"].get<double>(), 1e-12));
  }
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
