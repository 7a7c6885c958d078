// Golden frequency lists of every scaling method. Tolerances: 1e-12 relative against the double closed form, 2e-6
// against the float32 reference (which is itself that far from exact); attention factors 1e-12.

#include <algorithm>
#include <string>

#include "harness/core/text_util.h"
#include "harness/rope/angle.h"
#include "harness/rope/methods/yarn_ramp.h"
#include "tests/rope/golden_checks.h"

namespace fathom::rope {
namespace {

using nlohmann::json;
using test::GoldenFile;
using Options = std::map<std::string, std::string>;

const std::set<std::string> kListKeys = {
    "head_dim",     "rotary_dim",   "rope_theta",       "rope_type",   "model", "note", "partial_rotary_factor",
    "inv_freq_f32", "inv_freq_f64", "attention_factor", "max_rel_diff"};

std::set<std::string> with(std::initializer_list<const char*> more) {
  std::set<std::string> keys = kListKeys;
  keys.insert(more.begin(), more.end());
  return keys;
}

std::string join_numbers(const json& list) {
  std::vector<std::string> parts;
  for (const json& value : list) parts.push_back(format_double(value.get<double>()));
  return join(parts, ",");
}

/// Width of a partial rotation: truncated as the reference truncates, then as the case states it.
std::int64_t rotary_dim_of(const json& c) {
  if (!c.contains("head_dim")) return c["rotary_dim"];
  const std::int64_t head_dim = c["head_dim"];
  if (c["rope_type"] == "proportional") return head_dim;
  const auto r = static_cast<std::int64_t>(static_cast<double>(head_dim) * c.value("partial_rotary_factor", 1.0));
  if (c.contains("rotary_dim")) CHECK(c["rotary_dim"] == r);
  return r;
}

RopeGeometry geometry_of(const json& c, const char* context_key = nullptr) {
  return {rotary_dim_of(c), c["rope_theta"], context_key == nullptr ? 0 : c[context_key].get<std::int64_t>()};
}

/// `same_list`: a file may carry the double list for its main cases only.
void check_list(const json& c, const RopeFrequencies& got) {
  CHECK(worst_relative(got.inv_freq, c["inv_freq_f32"].get<std::vector<double>>()) < 2e-6);
  if (c.contains("inv_freq_f64")) {
    CHECK(worst_relative(got.inv_freq, c["inv_freq_f64"].get<std::vector<double>>()) < 1e-12);
  }
  CHECK_THAT(got.attention_factor, Catch::Matchers::WithinAbs(c["attention_factor"].get<double>(), 1e-12));
  CHECK(got.softmax_scale_factor == 1.0);
}

std::int64_t seq_len_of(const json& c) {
  return c.contains("seq_len") && !c["seq_len"].is_null() ? c["seq_len"].get<std::int64_t>() : 1;
}

/// Text of the keys that the case has.
Options options_of(const json& c, std::initializer_list<const char*> keys) {
  Options options;
  for (const char* key : keys) {
    if (c.contains(key)) options[key] = format_double(c[key].get<double>());
  }
  return options;
}

YarnRamp ramp_of(const json& c) {
  YarnRampSettings settings;
  settings.beta_fast = c.value("beta_fast", settings.beta_fast);
  settings.beta_slow = c.value("beta_slow", settings.beta_slow);
  settings.rounding = c.value("truncate", true) ? YarnRounding::kOutwards : YarnRounding::kNone;
  return yarn_ramp(geometry_of(c, "original_max_position_embeddings"), settings);
}

void check_yarn_case(const json& c) {
  require_known_keys(c, with({"factor", "original_max_position_embeddings", "beta_fast", "beta_slow", "mscale",
                              "mscale_all_dim", "truncate", "low", "high"}));
  Options options = options_of(c, {"beta_fast", "beta_slow", "mscale", "mscale_all_dim"});
  if (c.contains("truncate")) options["truncate"] = c["truncate"].get<bool>() ? "on" : "off";
  if (c.value("note", "").rfind("explicit attention_factor", 0) == 0) {
    options["attention_factor"] = format_double(c["attention_factor"].get<double>());
  }
  check_list(c, frequencies_of("yarn", c["factor"], geometry_of(c, "original_max_position_embeddings"), options));
  const YarnRamp ramp = ramp_of(c);
  CHECK_THAT(ramp.low, Catch::Matchers::WithinAbs(c["low"].get<double>(), 1e-12));
  CHECK_THAT(ramp.high, Catch::Matchers::WithinAbs(c["high"].get<double>(), 1e-12));
}

void check_softmax_scale(const json& c) {
  const std::string k = format_double(c["mscale_all_dim"].get<double>());
  const RopeFrequencies got = frequencies_of("yarn", c["factor"], {64, 10000, 4096},
                                             {{"mscale", k}, {"mscale_all_dim", k}, {"softmax_mscale", "on"}});
  CHECK_THAT(got.attention_factor, Catch::Matchers::WithinAbs(1.0, 1e-12));
  CHECK_THAT(std::sqrt(got.softmax_scale_factor), Catch::Matchers::WithinAbs(c["m"].get<double>(), 1e-12));
  const double scale = got.softmax_scale_factor / std::sqrt(c["qk_head_dim"].get<double>());
  CHECK_THAT(scale, Catch::Matchers::WithinAbs(c["scale"].get<double>(), 1e-12));
}

void check_paper_ramp(const json& c) {
  const RopeGeometry geometry{c["rotary_dim"], c["rope_theta"], c["original_max_position_embeddings"]};
  const Options betas = {{"beta_slow", format_double(c["alpha"].get<double>())},
                         {"beta_fast", format_double(c["beta"].get<double>())}};
  Options by_turns = betas;
  by_turns["ramp"] = "turns";
  const auto paper = frequencies_of("yarn", c["factor"], geometry, by_turns).inv_freq;
  CHECK(worst_relative(paper, c["inv_freq_f64_paper"].get<std::vector<double>>()) < 1e-12);
  const auto code = frequencies_of("yarn", c["factor"], geometry, betas).inv_freq;
  // The file gives four digits of the difference.
  CHECK_THAT(worst_relative(paper, code), Catch::Matchers::WithinAbs(c["max_rel_diff_to_code"].get<double>(), 6e-5));
  int differing = 0;
  for (std::size_t i = 0; i < code.size(); ++i) differing += std::abs(paper[i] - code[i]) > 1e-9 * code[i] ? 1 : 0;
  CHECK(differing == c["channels_differing"].get<int>());
}

void check_llama3_case(const json& c) {
  require_known_keys(c, with({"factor", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor",
                              "unchanged", "blended", "divided", "gguf_rope_freqs_factor_f64"}));
  const RopeGeometry geometry = geometry_of(c, "original_max_position_embeddings");
  const double s = c["factor"];
  const RopeFrequencies got =
      frequencies_of("llama3", s, geometry, options_of(c, {"low_freq_factor", "high_freq_factor"}));
  check_list(c, got);
  const std::vector<double> plain = default_inv_freq(geometry.rotary_dim, geometry.base);
  const RopeFrequencies by_divisors =
      frequencies_of("divisors", 1, geometry, {{"divisors", join_numbers(c["gguf_rope_freqs_factor_f64"])}});
  CHECK(worst_relative(got.inv_freq, by_divisors.inv_freq) < 1e-12);
  int unchanged = 0;
  int divided = 0;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    unchanged += got.inv_freq[i] == plain[i] ? 1 : 0;
    divided += got.inv_freq[i] == plain[i] / s ? 1 : 0;
  }
  CHECK(unchanged == c["unchanged"].get<int>());
  CHECK(divided == c["divided"].get<int>());
  CHECK(static_cast<int>(plain.size()) - unchanged - divided == c["blended"].get<int>());
}

/// Tables that the file names without giving their parameters.
RopeFrequencies long_table(const std::string& name) {
  if (name == "default_1e4") return frequencies_of("none", 1, {128, 1e4, 0});
  if (name == "minimax_m3") return frequencies_of("none", 1, {64, 5e6, 0});
  if (name == "llama3_8") return frequencies_of("llama3", 8, {128, 5e5, 8192});
  REQUIRE(name == "yarn4_1e6");
  return frequencies_of("yarn", 4, {128, 1e6, 32768});
}

void check_cos_sin_case(const json& c) {
  const RopeFrequencies table = long_table(c["table"]);
  const double position = c["position"];
  const auto channels = c["channels"].get<std::vector<std::size_t>>();
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const double theta = table.inv_freq[channels[i]];
    const double a = table.attention_factor;
    const double angle = position * theta;
    const auto near = [&](const char* key, double tolerance) {
      return Catch::Matchers::WithinAbs(c[key][i].get<double>(), tolerance);
    };
    // Two libraries' powers differ by a unit or two in the last place of theta, which the position multiplies.
    const double closed_form = 1e-12 + 5e-16 * angle;
    CHECK_THAT(a * std::cos(angle), near("cos_f64", closed_form));
    CHECK_THAT(a * std::sin(angle), near("sin_f64", closed_form));
    // Half a unit in the last place of float32 below 2.
    const CosSin entry = table_entry(position, theta, a);
    CHECK_THAT(entry.cos, near("cos_f64", 6e-8 + closed_form));
    CHECK_THAT(entry.sin, near("sin_f64", 6e-8 + closed_form));
    // The float32 reference drifts with the position, and its scaled lists are up to 4e-7 from the closed form.
    const bool scaled = c["table"] == "llama3_8" || c["table"] == "yarn4_1e6";
    const double drift = (scaled ? 5.2e-7 : 1.2e-7) * angle + 1e-6;
    CHECK_THAT(entry.cos, near("cos_f32", a * drift));
    CHECK_THAT(entry.sin, near("sin_f32", a * drift));
  }
}

}  // namespace

void check_default(GoldenFile& golden) {
  golden.each("/cases", [](const json& c) {
    require_known_keys(c, kListKeys);
    check_list(c, frequencies_of("none", 1, geometry_of(c)));
  });
}

void check_linear(GoldenFile& golden) {
  golden.each("/cases", [](const json& c) {
    require_known_keys(c, with({"factor"}));
    check_list(c, frequencies_of("linear", c["factor"], geometry_of(c)));
  });
}

void check_ntk(GoldenFile& golden) {
  golden.each("/cases", [](const json& c) {
    require_known_keys(c, with({"alpha", "new_base"}));
    const RopeFrequencies got = frequencies_of("ntk", c["alpha"], geometry_of(c));
    check_list(c, got);
    CHECK(worst_relative(got.inv_freq, default_inv_freq(rotary_dim_of(c), c["new_base"])) < 1e-12);
  });
}

void check_dynamic(GoldenFile& golden) {
  golden.each("/cases", [](const json& c) {
    require_known_keys(c, with({"factor", "max_position_embeddings", "seq_len", "effective_base"}));
    const RopeFrequencies got =
        frequencies_of("dynamic", c["factor"], geometry_of(c, "max_position_embeddings"), {}, seq_len_of(c));
    check_list(c, got);
    CHECK(worst_relative(got.inv_freq, default_inv_freq(rotary_dim_of(c), c["effective_base"])) < 1e-12);
  });
}

void check_yarn(GoldenFile& golden) {
  golden.each("/cases", check_yarn_case);
  golden.each("/deepseek_softmax_scale", check_softmax_scale);
  golden.each("/paper_variant/items", check_paper_ramp);
}

void check_llama3(GoldenFile& golden) {
  golden.each("/cases", check_llama3_case);
}

void check_longrope(GoldenFile& golden) {
  const json& lists = golden.take("/factors");
  golden.each("/cases", [&lists](const json& c) {
    require_known_keys(
        c, with({"factor", "original_max_position_embeddings", "max_position_embeddings", "seq_len", "uses"}));
    const json& list = lists[c["model"].get<std::string>()];
    const double l0 = c["original_max_position_embeddings"];
    const double factor =
        c.contains("factor") ? c["factor"].get<double>() : c["max_position_embeddings"].get<double>() / l0;
    const Options options = {{"short_factor", join_numbers(list["short_factor"])},
                             {"long_factor", join_numbers(list["long_factor"])}};
    const RopeGeometry geometry = geometry_of(c, "original_max_position_embeddings");
    check_list(c, frequencies_of("longrope", factor, geometry, options, seq_len_of(c)));
    CHECK(c["uses"] == (seq_len_of(c) > geometry.original_context ? "long" : "short"));
  });
  golden.each("/attention_factor_table", [](const json& c) {
    const RopeGeometry geometry{4, 10000, c["original_max_position_embeddings"]};
    const RopeFrequencies got =
        frequencies_of("longrope", c["factor"], geometry, {{"short_factor", "1,1"}, {"long_factor", "1,2"}});
    CHECK_THAT(got.attention_factor, Catch::Matchers::WithinAbs(c["attention_factor"].get<double>(), 1e-12));
  });
}

void check_proportional(GoldenFile& golden) {
  golden.each("/cases", [](const json& c) {
    require_known_keys(c, with({"factor", "nonzero"}));
    const RopeFrequencies got = frequencies_of("proportional", c.value("factor", 1.0), geometry_of(c),
                                               {{"share", format_double(c["partial_rotary_factor"].get<double>())}});
    check_list(c, got);
    CHECK(got.inv_freq.size() - static_cast<std::size_t>(std::count(got.inv_freq.begin(), got.inv_freq.end(), 0.0)) ==
          c["nonzero"].get<std::size_t>());
  });
}

void check_cos_sin_long(GoldenFile& golden) {
  golden.each("/cases", check_cos_sin_case);
}

}  // namespace fathom::rope
