// Golden predictions: counts are exact, closed forms 1e-12 relative, printed figures to their last digit.

#include <cmath>
#include <set>
#include <string>

#include "harness/core/text_util.h"
#include "harness/rope/angle.h"
#include "harness/rope/base_bound.h"
#include "harness/rope/precision.h"
#include "harness/rope/theory.h"
#include "tests/rope/golden_checks.h"
#include "tests/rope/theory_presets.h"

namespace fathom::rope {
namespace {

using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;
using nlohmann::json;
using test::GoldenFile;

/// "128K" = 131072.
std::int64_t tokens_of(const std::string& text) {
  const std::int64_t unit = text.back() == 'M' ? INT64_C(1) << 20 : 1024;
  return *parse_int(text.substr(0, text.size() - 1)) * unit;
}

void check_period_case(const json& c) {
  require_known_keys(c, {"rotary_dim", "base", "shortest_period", "longest_period", "periods", "wrapped", "unwrapped",
                         "first_unwrapped_channel"});
  const std::vector<double> inv_freq = default_inv_freq(c["rotary_dim"], c["base"]);
  const std::vector<double> all = periods(inv_freq);
  CHECK_THAT(all.front(), WithinRel(c["shortest_period"].get<double>(), 1e-12));
  CHECK_THAT(all.back(), WithinRel(c["longest_period"].get<double>(), 1e-12));
  // Printed with twelve digits.
  if (c.contains("periods")) CHECK(worst_relative(all, c["periods"].get<std::vector<double>>()) < 1e-11);
  for (const auto& [length, wrapped] : c["wrapped"].items()) {
    INFO("length " << length);
    CHECK(wrapped_channels(inv_freq, tokens_of(length)) == wrapped.get<std::int64_t>());
    CHECK(c["unwrapped"][length] == static_cast<std::int64_t>(inv_freq.size()) - wrapped.get<std::int64_t>());
    const auto first = first_unwrapped_channel(inv_freq, tokens_of(length));
    CHECK(first.has_value() == !c["first_unwrapped_channel"][length].is_null());
    if (first) CHECK(*first == c["first_unwrapped_channel"][length].get<std::int64_t>());
  }
}

void check_scaled_preset(const json& c) {
  require_known_keys(c, {"name", "channels", "longest_period", "wrapped"});
  INFO(c["name"].get<std::string>());
  const std::vector<double> inv_freq = preset_list(c["name"]).inv_freq;
  CHECK(inv_freq.size() == c["channels"].get<std::size_t>());
  CHECK_THAT(periods(inv_freq).back(), WithinRel(c["longest_period"].get<double>(), 1e-12));
  for (const auto& [length, wrapped] : c["wrapped"].items()) {
    CHECK(wrapped_channels(inv_freq, tokens_of(length)) == wrapped.get<std::int64_t>());
  }
}

void check_critical_case(const json& c) {
  require_known_keys(c, {"head_dim", "base", "train_len", "d_extra", "d_extra_clamped", "full_period_channels"});
  const std::int64_t d = c["head_dim"];
  const std::int64_t got = critical_dimension(d, c["base"], c["train_len"]);
  CHECK(got == c["d_extra_clamped"].get<std::int64_t>());
  CHECK(got == std::min(d, c["d_extra"].get<std::int64_t>()));
  // The file counts T_i <= length; no period of these lists is a whole number.
  CHECK(wrapped_channels(default_inv_freq(d, c["base"]), c["train_len"]) ==
        c["full_period_channels"].get<std::int64_t>());
}

/// The file's rows are about Llama-2: d = 128, base 1e4, trained on 4096 tokens.
void check_extrapolation(const json& c) {
  require_known_keys(c, {"pretrain", "tune_len", "beta", "critical_base", "T_extra", "beta1", "beta2", "beta3"});
  CHECK_THAT(critical_base(10000, 4096, c["tune_len"]), WithinRel(c["critical_base"].get<double>(), 1e-12));
  if (c.contains("beta")) {
    const std::int64_t d_extra = critical_dimension(128, 10000, 4096);
    CHECK_THAT(extrapolation_limit(c["beta"], d_extra, 128), WithinRel(c["T_extra"].get<double>(), 1e-12));
  }
  if (c.contains("beta1")) {
    const SmallBases bases = small_bases(c["tune_len"]);
    CHECK_THAT(bases.quarter, WithinRel(c["beta1"].get<double>(), 1e-12));
    CHECK_THAT(bases.half, WithinRel(c["beta2"].get<double>(), 1e-12));
    CHECK_THAT(bases.whole, WithinRel(c["beta3"].get<double>(), 1e-12));
  }
}

void check_first_negative(const std::vector<double>& inv_freq, std::int64_t end, const json& expected) {
  const auto got = first_negative_advantage(inv_freq, 0, end);
  CHECK(got.has_value() == !expected.is_null());
  if (got && !expected.is_null()) CHECK(*got == expected.get<std::int64_t>());
}

void check_published_bound(const json& c) {
  const std::int64_t length = c["L"];
  check_first_negative(default_inv_freq(128, c["paper_lower_bound"]), length,
                       c["first_negative_m_at_rounded_paper_base"]);
  check_first_negative(default_inv_freq(128, c["su_lower_bound"]), length, c["first_negative_m_at_rounded_su_base"]);
  CHECK_THAT(fitted_base_bound(length), WithinRel(c["power_law_fit"].get<double>(), 1e-12));
  // The file's constant has ten digits.
  CHECK_THAT(asymptotic_base_bound(length), WithinRel(c["asymptotic_L_over_0_6165"].get<double>(), 1e-10));
}

/// The file's search ended with steps of 1e-5 to 1e-3 of its base: the base holds, one half a percent lower does not.
void check_grid_search(const json& c) {
  const double base = c["base"];
  check_first_negative(default_inv_freq(128, base), c["L"], nullptr);
  CHECK(first_negative_advantage(default_inv_freq(128, base * (1 - 5e-3)), 0, c["L"]).has_value());
}

void check_first_negative_case(const json& c) {
  require_known_keys(c, {"head_dim", "base", "first_negative_m", "value_there", "cap"});
  const std::vector<double> inv_freq = default_inv_freq(c["head_dim"], c["base"]);
  check_first_negative(inv_freq, c["cap"], c["first_negative_m"]);
  if (c["first_negative_m"].is_null()) return;
  // Printed with six digits.
  CHECK_THAT(similar_key_advantage(inv_freq, 0, c["first_negative_m"]),
             WithinRel(c["value_there"].get<double>(), 1e-5));
}

void check_preset_limit(const json& c) {
  require_known_keys(c, {"name", "channels", "claimed_context", "first_negative_m", "search_cap"});
  INFO(c["name"].get<std::string>());
  const PresetList preset = preset_list(c["name"]);
  CHECK(preset.inv_freq.size() + static_cast<std::size_t>(preset.n_still) == c["channels"].get<std::size_t>());
  const auto got = first_negative_advantage(preset.inv_freq, preset.n_still, c["search_cap"]);
  CHECK(got.has_value() == !c["first_negative_m"].is_null());
  if (got) CHECK(*got == c["first_negative_m"].get<std::int64_t>());
}

void check_curve(const json& c) {
  require_known_keys(c, {"head_dim", "base", "m", "B", "normalised"});
  const std::vector<double> inv_freq = default_inv_freq(c["head_dim"], c["base"]);
  const auto distances = c["m"].get<std::vector<std::int64_t>>();
  const std::vector<double> curve = decay_curve(inv_freq, 0, distances);
  for (std::size_t i = 0; i < distances.size(); ++i) {
    // Printed with twelve and nine digits.
    CHECK_THAT(similar_key_advantage(inv_freq, 0, distances[i]), WithinAbs(c["B"][i].get<double>(), 1e-9));
    CHECK_THAT(curve[i], WithinAbs(c["normalised"][i].get<double>(), 1e-9));
  }
}

void check_position_case(const json& c) {
  require_known_keys(c, {"position", "as_bf16", "as_fp16", "as_fp32"});
  const auto as_json = [&c](FloatFormat format) {
    const double rounded = round_to_format(c["position"], format);
    return std::isinf(rounded) ? json("inf") : json(rounded);
  };
  CHECK(as_json(FloatFormat::kBfloat16) == c["as_bf16"]);
  CHECK(as_json(FloatFormat::kFloat16) == c["as_fp16"]);
  CHECK(as_json(FloatFormat::kFloat32) == c["as_fp32"]);
}

/// Rows of the cosine table that differ, where `angle` rounds m and theta in its way and the table is bf16.
template <typename Angle>
std::int64_t distinct_cosine_rows(const std::vector<double>& inv_freq, std::int64_t n_rows, Angle angle) {
  std::set<std::vector<double>> rows;
  for (std::int64_t m = 0; m < n_rows; ++m) {
    std::vector<double> row;
    for (const double theta : inv_freq) {
      row.push_back(round_to_format(std::cos(angle(static_cast<double>(m), theta)), FloatFormat::kBfloat16));
    }
    rows.insert(row);
  }
  return static_cast<std::int64_t>(rows.size());
}

void check_frequency_cast(const json& c) {
  require_known_keys(
      c, {"head_dim", "base", "max_rel_err_bf16", "max_rel_err_fp16", "fp16_zero_channels", "fp16_subnormal_channels",
          "cos_abs_err_pos4095_bf16_invfreq", "distinct_cos_rows_of_4096_when_positions_and_angles_bf16",
          "distinct_cos_rows_of_4096_fp32_angles_bf16_table"});
  const std::vector<double> inv_freq = default_inv_freq(c["head_dim"], c["base"]);
  const FrequencyCast bf16 = cast_frequencies(inv_freq, FloatFormat::kBfloat16);
  const FrequencyCast fp16 = cast_frequencies(inv_freq, FloatFormat::kFloat16);
  // Printed with four digits.
  CHECK_THAT(bf16.worst_relative_error, WithinRel(c["max_rel_err_bf16"].get<double>(), 2e-4));
  CHECK_THAT(fp16.worst_relative_error, WithinRel(c["max_rel_err_fp16"].get<double>(), 2e-4));
  CHECK(fp16.n_zero == c["fp16_zero_channels"].get<std::int64_t>());
  CHECK(fp16.n_subnormal == c["fp16_subnormal_channels"].get<std::int64_t>());
  CHECK_THAT(cosine_error_of_cast(inv_freq, FloatFormat::kBfloat16, 4095),
             WithinAbs(c["cos_abs_err_pos4095_bf16_invfreq"].get<double>(), 1e-3));
  const std::int64_t in_bf16 = c["distinct_cos_rows_of_4096_when_positions_and_angles_bf16"];
  CHECK(distinct_positions(FloatFormat::kBfloat16, 4096) == in_bf16);
  CHECK(distinct_cosine_rows(inv_freq, 4096, [](double m, double theta) {
          return round_to_format(round_to_format(m, FloatFormat::kBfloat16) * theta, FloatFormat::kBfloat16);
        }) == in_bf16);
  CHECK(distinct_cosine_rows(inv_freq, 4096, [](double m, double theta) {
          return round_to_format(m * theta, FloatFormat::kFloat32);
        }) == c["distinct_cos_rows_of_4096_fp32_angles_bf16_table"].get<std::int64_t>());
}

void check_iterated_angle(const json& c) {
  require_known_keys(c, {"rotary_dim", "base", "position", "max_rel_angle_err", "max_abs_cos_err"});
  const std::vector<double> inv_freq = default_inv_freq(c["rotary_dim"], c["base"]);
  const std::vector<float> angles = iterated_float32_angles(c["rotary_dim"], c["base"], c["position"]);
  double worst_angle = 0;
  double worst_cosine = 0;
  for (std::size_t i = 0; i < angles.size(); ++i) {
    const double exact = c["position"].get<double>() * inv_freq[i];
    worst_angle = std::max(worst_angle, std::abs(static_cast<double>(angles[i]) - exact) / exact);
    worst_cosine = std::max(worst_cosine, std::abs(std::cos(static_cast<double>(angles[i])) - std::cos(exact)));
  }
  // Specification: 3e-6 for iterated angles. Printed with three digits.
  CHECK(worst_angle < 3e-6);
  CHECK_THAT(worst_angle, WithinRel(c["max_rel_angle_err"].get<double>(), 5e-3));
  CHECK_THAT(worst_cosine, WithinRel(c["max_abs_cos_err"].get<double>(), 1e-2));
}

/// Score of the sine-pattern vectors at a shift, with float32 frequencies, angles and sums.
double score_in_float32(std::int64_t shift) {
  const auto pattern = [](std::int64_t k, double seed) {
    return static_cast<float>(std::round(std::sin(1.7 * static_cast<double>(k + 1) + seed) * 1e4) / 1e4);
  };
  const std::vector<double> inv_freq = default_inv_freq(128, 10000);
  float score = 0;
  for (std::int64_t i = 0; i < 64; ++i) {
    const auto theta = static_cast<float>(inv_freq[static_cast<std::size_t>(i)]);
    const auto turned = [&](double seed, std::int64_t position, float& first, float& second) {
      const float angle = static_cast<float>(position) * theta;
      const float a = pattern(i, seed);
      const float b = pattern(i + 64, seed);
      first = a * std::cos(angle) - b * std::sin(angle);
      second = b * std::cos(angle) + a * std::sin(angle);
    };
    float q1 = 0, q2 = 0, k1 = 0, k2 = 0;
    turned(0.0, shift + 7, q1, q2);
    turned(0.5, shift, k1, k2);
    score += q1 * k1 + q2 * k2;
  }
  return score;
}

}  // namespace

void check_periods(GoldenFile& golden) {
  golden.each("/cases", check_period_case);
  golden.each("/scaled_presets", check_scaled_preset);
}

void check_critical_dimension(GoldenFile& golden) {
  golden.each("/cases", check_critical_case);
  golden.each("/extrapolation", check_extrapolation);
  const json& published = golden.take("/published");
  CHECK(critical_dimension(128, 10000, 4096) == published["llama2_d_extra"].get<std::int64_t>());
  CHECK(128 - critical_dimension(128, 10000, 4096) == published["llama2_unseen_dims"].get<std::int64_t>());
}

void check_base_lower_bound(GoldenFile& golden) {
  golden.each("/published", check_published_bound);
  golden.each("/own_grid_search", check_grid_search);
  golden.each("/first_negative", check_first_negative_case);
  golden.each("/curve", check_curve);
  golden.each("/preset_limits/values", check_preset_limit);
  golden.each("/partial_rope/check", [](const json& c) {
    CHECK_THAT(similar_key_advantage(default_inv_freq(64, c["base"]), 32, c["m"]),
               WithinAbs(c["value"].get<double>(), 1e-9));
  });
}

void check_precision(GoldenFile& golden) {
  golden.each("/positions", check_position_case);
  golden.each("/inv_freq_cast", check_frequency_cast);
  golden.each("/ggml_iterative_theta/values", check_iterated_angle);
  golden.each("/shift_invariance_float32/values", [](const json& c) {
    // Angles at shift 10^7 are whole units apart in float32: the order of the sums moves the third digit there.
    const double tolerance = 1e-4 + 1e-8 * c["shift"].get<double>();
    CHECK_THAT(score_in_float32(c["shift"]), WithinAbs(c["score"].get<double>(), tolerance));
  });
}

}  // namespace fathom::rope
