// Golden values of the schemes that are not a frequency list. Double references are met to 1e-12 (rounded ones to their
// last digit), float32 ones to 1e-5, as rotation outputs are.

#include <algorithm>
#include <string>

#include "harness/rope/alibi_slopes.h"
#include "harness/rope/cope.h"
#include "harness/rope/grape.h"
#include "harness/rope/inkling_bias.h"
#include "harness/rope/precision.h"
#include "harness/rope/query_temperature.h"
#include "harness/rope/relative_bias.h"
#include "harness/rope/sinusoidal.h"
#include "harness/rope/t5_bucket.h"
#include "harness/rope/xpos.h"
#include "tests/rope/golden_checks.h"

namespace fathom::rope {
namespace {

using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;
using nlohmann::json;
using test::GoldenFile;

constexpr double kFloat32Tolerance = 1e-5;

std::vector<double> numbers(const json& list) {
  return list.get<std::vector<double>>();
}

double dot(const std::vector<double>& u, const std::vector<double>& v) {
  double sum = 0;
  for (std::size_t i = 0; i < u.size(); ++i) sum += u[i] * v[i];
  return sum;
}

void check_slopes_case(const json& c) {
  require_known_keys(c, {"num_heads", "power_of_two", "slopes", "first", "last", "max", "min", "mpt_slopes",
                         "bloom_bf16_slopes", "note"});
  const std::vector<double> got = alibi_slopes(c["num_heads"]);
  const std::vector<double> expected = numbers(c["slopes"]);
  REQUIRE(got.size() == expected.size());
  for (std::size_t h = 0; h < got.size(); ++h) {
    // Exact in float32 for powers of two; elsewhere the reference multiplies ratios and its last digits wander.
    if (c["power_of_two"].get<bool>()) CHECK(static_cast<float>(got[h]) == static_cast<float>(expected[h]));
    CHECK_THAT(got[h], WithinAbs(expected[h], 1e-6 * expected[h]));
    if (c.contains("bloom_bf16_slopes")) {
      // Printed with nine digits.
      CHECK_THAT(round_to_format(got[h], FloatFormat::kBfloat16),
                 WithinRel(c["bloom_bf16_slopes"][h].get<double>(), 1e-8));
    }
  }
  CHECK_THAT(got.front(), WithinAbs(c["first"].get<double>(), 1e-7));
  CHECK_THAT(got.back(), WithinAbs(c["last"].get<double>(), 1e-7));
  CHECK_THAT(*std::max_element(got.begin(), got.end()), WithinAbs(c["max"].get<double>(), 1e-7));
  CHECK_THAT(*std::min_element(got.begin(), got.end()), WithinAbs(c["min"].get<double>(), 1e-7));
  if (c["mpt_slopes"] != "same") CHECK(worst_relative(got, numbers(c["mpt_slopes"])) < 1e-6);
}

/// BLOOM: slope times the number of real tokens before the key.
void check_bloom_bias(const json& c) {
  for (std::size_t row = 0; row < c["bias"].size(); ++row) {
    const auto mask = c["attention_mask"][row].get<std::vector<int>>();
    const std::vector<double> slopes = alibi_slopes(static_cast<std::int64_t>(c["bias"][row].size()));
    for (std::size_t h = 0; h < slopes.size(); ++h) {
      int n_real = 0;
      for (std::size_t k = 0; k < mask.size(); ++k) {
        n_real += mask[k];
        CHECK(slopes[h] * (n_real - 1) * mask[k] == c["bias"][row][h][k].get<double>());
      }
    }
  }
}

void check_causal_bias(const json& bias) {
  const std::vector<double> slopes = alibi_slopes(static_cast<std::int64_t>(bias.size()));
  for (std::size_t h = 0; h < bias.size(); ++h) {
    for (std::size_t q = 0; q < bias[h].size(); ++q) {
      for (std::size_t k = 0; k <= q; ++k)
        CHECK(-slopes[h] * static_cast<double>(q - k) == bias[h][q][k].get<double>());
    }
  }
}

/// MPT: relative to the last key.
void check_mpt_bias(const json& bias) {
  const std::vector<double> slopes = alibi_slopes(static_cast<std::int64_t>(bias.size()));
  for (std::size_t h = 0; h < bias.size(); ++h) {
    const std::size_t n = bias[h].size();
    for (std::size_t k = 0; k < n; ++k) {
      CHECK_THAT(-slopes[h] * static_cast<double>(n - 1 - k), WithinAbs(bias[h][k].get<double>(), 1e-9));
    }
  }
}

void check_alibi_example(const json& c) {
  const std::string what = c["what"];
  if (c.contains("attention_mask")) {
    check_bloom_bias(c);
  } else if (what.find("causal") != std::string::npos) {
    check_causal_bias(c["bias"]);
  } else {
    REQUIRE(what.find("MPT") != std::string::npos);
    check_mpt_bias(c["bias"]);
  }
}

void check_temperature_case(const json& c) {
  QueryTemperature temperature;
  const std::string kind = c["kind"];
  std::int64_t position =
      c.contains("position_1based") ? c["position_1based"].get<std::int64_t>() - 1 : c["position"].get<std::int64_t>();
  if (kind.rfind("llama4", 0) == 0) {
    require_known_keys(c, {"kind", "floor_scale", "attn_scale", "position", "multiplier"});
    temperature = {TemperatureKind::kLlama4, c["attn_scale"], c["floor_scale"]};
  } else if (kind.rfind("ministral3", 0) == 0) {
    require_known_keys(c, {"kind", "original_max_position_embeddings", "beta", "position", "multiplier"});
    temperature = {TemperatureKind::kMinistral3, c["beta"], c["original_max_position_embeddings"]};
  } else {
    REQUIRE(kind.rfind("log-n", 0) == 0);
    require_known_keys(c, {"kind", "train_len", "position_1based", "multiplier"});
    temperature = {TemperatureKind::kLogN, 0, c["train_len"]};
  }
  CHECK_THAT(query_multiplier(temperature, position), WithinAbs(c["multiplier"].get<double>(), 1e-12));
}

void check_xpos_part(const json& part) {
  const std::int64_t d_head = part["head_dim"];
  const std::vector<double> zeta = xpos_zeta(d_head);
  CHECK(worst_absolute(zeta, numbers(part["zeta"])) < 1e-7);  // printed as float32
  const auto n = static_cast<std::int64_t>(part["x"].size());
  const auto centre = static_cast<double>(xpos_centre(n));
  for (std::size_t m = 0; m < part["x"].size(); ++m) {
    const std::vector<double> x = numbers(part["x"][m]);
    for (std::size_t i = 0; i < zeta.size(); ++i) {
      const auto position = static_cast<double>(m);
      const double angle = position * std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(d_head));
      const double scale = xpos_scale(zeta[i], position, centre, part["scale_base"]);
      const double even = x[2 * i] * std::cos(angle) - x[2 * i + 1] * std::sin(angle);
      const double odd = x[2 * i + 1] * std::cos(angle) + x[2 * i] * std::sin(angle);
      CHECK_THAT(even * scale, WithinAbs(part["q_out"][m][2 * i].get<double>(), kFloat32Tolerance));
      CHECK_THAT(odd * scale, WithinAbs(part["q_out"][m][2 * i + 1].get<double>(), kFloat32Tolerance));
      CHECK_THAT(even / scale, WithinAbs(part["k_out"][m][2 * i].get<double>(), kFloat32Tolerance));
      CHECK_THAT(odd / scale, WithinAbs(part["k_out"][m][2 * i + 1].get<double>(), kFloat32Tolerance));
    }
  }
}

void check_kerple_case(const json& c) {
  require_known_keys(c, {"kind", "a", "p", "distance", "bias"});
  for (std::size_t i = 0; i < c["distance"].size(); ++i) {
    const double distance = c["distance"][i];
    const double got =
        c["kind"] == "log" ? kerple_log_bias(c["p"], c["a"], distance) : kerple_power_bias(c["a"], c["p"], distance);
    CHECK_THAT(got, WithinAbs(c["bias"][i].get<double>(), 1e-12));
  }
}

void check_fire_part(const json& part) {
  const json& p = part["params"];
  const double threshold = p["L_multiplier"].get<double>() * p["L"].get<double>();
  const auto in_weight = numbers(p["mlp_in_weight"]);
  const auto in_bias = numbers(p["mlp_in_bias"]);
  for (std::size_t h = 0; h < part["bias"].size(); ++h) {
    for (std::size_t q = 0; q < part["bias"][h].size(); ++q) {
      for (std::size_t k = 0; k < part["bias"][h][q].size(); ++k) {
        const double distance = std::abs(static_cast<double>(q) - static_cast<double>(k));
        const double x = fire_argument(distance, static_cast<double>(q), p["c"], threshold);
        double out = p["mlp_out_bias"][h];
        for (std::size_t w = 0; w < in_weight.size(); ++w) {
          out += p["mlp_out_weight"][h][w].get<double>() * std::max(in_weight[w] * x + in_bias[w], 0.0);
        }
        CHECK_THAT(out, WithinAbs(part["bias"][h][q][k].get<double>(), kFloat32Tolerance));
      }
    }
  }
}

void check_cope_part(const json& part) {
  const auto n_positions = static_cast<std::int64_t>(part["pos_emb"].size());
  for (std::size_t q = 0; q < part["q"].size(); ++q) {
    std::vector<double> position_logits;
    for (const json& embedding : part["pos_emb"])
      position_logits.push_back(dot(numbers(part["q"][q]), numbers(embedding)));
    std::vector<double> logits = numbers(part["logits"][q]);
    logits.resize(q + 1);
    const std::vector<double> positions = cope_positions(logits, n_positions);
    for (std::size_t k = 0; k < part["bias"][q].size(); ++k) {
      // The reference counts nothing beyond the query: keys to come stand at position 0.
      const double position = k <= q ? positions[k] : 0;
      CHECK_THAT(cope_bias(position, position_logits), WithinAbs(part["bias"][q][k].get<double>(), kFloat32Tolerance));
    }
  }
}

void check_grape_part(const json& part) {
  const std::vector<double> a = numbers(part["a"]);
  const std::vector<double> b = numbers(part["b"]);
  const double angle = part["n"].get<double>() * part["omega"].get<double>();
  for (std::size_t column = 0; column < a.size(); ++column) {
    std::vector<double> unit(a.size(), 0.0);
    unit[column] = 1;
    const std::vector<double> got = grape_rotate(a, b, angle, unit);
    for (std::size_t row = 0; row < a.size(); ++row) {
      CHECK_THAT(got[row], WithinAbs(part["G"][row][column].get<double>(), 1e-12));
    }
  }
}

SinusoidalVariant variant_of(const std::string& text) {
  if (text.rfind("paper_interleaved", 0) == 0) return SinusoidalVariant::kInterleaved;
  if (text.rfind("paper_frequencies_concatenated", 0) == 0) return SinusoidalVariant::kConcatenated;
  REQUIRE(text.rfind("tensor2tensor", 0) == 0);
  return SinusoidalVariant::kTensor2Tensor;
}

void check_sinusoidal_case(const json& c) {
  require_known_keys(c, {"variant", "d_model", "positions", "rows", "values", "padding_idx", "note"});
  const SinusoidalVariant variant = variant_of(c["variant"]);
  std::optional<std::int64_t> padding;
  if (c.contains("padding_idx") && !c["padding_idx"].is_null()) padding = c["padding_idx"].get<std::int64_t>();
  const auto positions = c[c.contains("rows") ? "rows" : "positions"].get<std::vector<std::int64_t>>();
  const std::int64_t d_model = c["d_model"];
  const std::vector<double> table =
      sinusoidal_table(variant, d_model, *std::max_element(positions.begin(), positions.end()) + 1, padding);
  for (std::size_t row = 0; row < positions.size(); ++row) {
    const auto first = table.begin() + positions[row] * d_model;
    const std::vector<double> got(first, first + d_model);
    // The paper's tables are printed with twelve digits; the third variant was run in float32.
    const double tolerance =
        variant == SinusoidalVariant::kTensor2Tensor ? 1.2e-7 * static_cast<double>(positions[row]) + 1e-6 : 1e-11;
    CHECK(worst_absolute(got, numbers(c["values"][row])) <= tolerance);
  }
}

void check_bucket_case(const json& c) {
  require_known_keys(c, {"bidirectional", "num_buckets", "max_distance", "distances", "relative_positions", "buckets",
                         "first_distance_of_bucket", "mismatch_llamacpp_formula", "mismatch_float64_formula"});
  const bool both = c["bidirectional"];
  const T5Buckets settings{c["num_buckets"], c["max_distance"],
                           both ? BucketDirection::kBidirectional : BucketDirection::kCausal};
  const auto buckets = c["buckets"].get<std::vector<std::int64_t>>();
  const auto n = static_cast<std::int64_t>(buckets.size());
  const std::string text = c[both ? "relative_positions" : "distances"];
  const bool future = text.rfind("future keys", 0) == 0;
  // Lists run over key - query = -n/2 .. n/2, over query - key = 0 .. n - 1, or over key - query = 1 .. n.
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t relative = both ? i - n / 2 : (future ? i + 1 : -i);
    INFO("key - query " << relative);
    CHECK(t5_bucket(relative, settings) == buckets[static_cast<std::size_t>(i)]);
  }
  if (!c.contains("first_distance_of_bucket")) return;
  CHECK(t5_resolution_end(settings) == c["first_distance_of_bucket"].back().get<std::int64_t>());
  for (std::size_t b = 0; b < c["first_distance_of_bucket"].size(); ++b) {
    const std::int64_t first = c["first_distance_of_bucket"][b];
    CHECK(t5_bucket(-first, settings) == static_cast<std::int64_t>(b));
    if (first > 0) CHECK(t5_bucket(1 - first, settings) == static_cast<std::int64_t>(b) - 1);
  }
}

}  // namespace

void check_alibi(GoldenFile& golden) {
  golden.each("/cases", check_slopes_case);
  golden.each("/examples", check_alibi_example);
}

void check_attention_temperature(GoldenFile& golden) {
  golden.each("/cases", check_temperature_case);
}

void check_inkling(GoldenFile& golden) {
  const json& params = golden.take("/params");
  const std::int64_t extent = params["rel_extent"];
  std::vector<double> projection;
  for (const json& row : golden.take("/proj")) {
    for (const json& value : row) projection.push_back(value);
  }
  const json& states = golden.take("/relative_states");
  const json& bias = golden.take("/bias");
  const std::int64_t n = params["seq"];
  for (std::size_t h = 0; h < params["heads"].get<std::size_t>(); ++h) {
    for (std::int64_t q = 0; q < n; ++q) {
      for (std::int64_t k = 0; k < n; ++k) {
        const double got = inkling_bias(numbers(states[static_cast<std::size_t>(q)][h]), projection, extent, q - k);
        CHECK(got == bias[h][static_cast<std::size_t>(q)][static_cast<std::size_t>(k)].get<double>());
      }
    }
    CHECK(golden.take("/decode_row_query3")[h] == bias[h][3]);
  }
  golden.each("/log_scaling/values", [](const json& c) {
    require_known_keys(c, {"floor", "alpha", "query_position", "tau"});
    CHECK_THAT(inkling_log_scaling(c["query_position"], c["floor"], c["alpha"]),
               WithinAbs(c["tau"].get<double>(), 1e-12));
  });
  golden.take("/defaults");  // class defaults, which the resolver of checkpoints owns
}

void check_other_schemes(GoldenFile& golden) {
  check_xpos_part(golden.take("/xpos"));
  golden.each("/kerple/values", check_kerple_case);
  check_fire_part(golden.take("/fire"));
  check_cope_part(golden.take("/cope"));
  check_grape_part(golden.take("/grape_m"));
}

void check_sinusoidal(GoldenFile& golden) {
  golden.each("/cases", check_sinusoidal_case);
}

void check_t5_buckets(GoldenFile& golden) {
  golden.each("/cases", check_bucket_case);
}

}  // namespace fathom::rope
