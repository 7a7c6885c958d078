// The worked examples of the articles: rotations, tables and sizes, to 1e-12 where double, to the quoted digits where a
// text quotes them.

#include <cmath>

#include "harness/rope/angle.h"
#include "harness/rope/sinusoidal.h"
#include "tests/rope/golden_checks.h"

namespace fathom::rope {
namespace {

using Catch::Matchers::WithinAbs;
using nlohmann::json;
using Vector = std::vector<double>;

Vector numbers(const json& list) {
  return list.get<Vector>();
}

double dot(const Vector& u, const Vector& v) {
  double sum = 0;
  for (std::size_t i = 0; i < u.size(); ++i) sum += u[i] * v[i];
  return sum;
}

/// Rotation of the pairs (x[first(i)], x[second(i)]).
template <typename First, typename Second>
Vector rotate_pairs(Vector x, const Vector& inv_freq, double position, First first, Second second) {
  for (std::size_t i = 0; i < inv_freq.size(); ++i) {
    const double a = x[first(i)];
    const double b = x[second(i)];
    const double angle = position * inv_freq[i];
    x[first(i)] = a * std::cos(angle) - b * std::sin(angle);
    x[second(i)] = b * std::cos(angle) + a * std::sin(angle);
  }
  return x;
}

Vector split_half(const Vector& x, const Vector& inv_freq, double position) {
  const std::size_t half = inv_freq.size();
  return rotate_pairs(
      x, inv_freq, position, [](std::size_t i) { return i; }, [half](std::size_t i) { return i + half; });
}

Vector interleaved(const Vector& x, const Vector& inv_freq, double position) {
  return rotate_pairs(
      x, inv_freq, position, [](std::size_t i) { return 2 * i; }, [](std::size_t i) { return 2 * i + 1; });
}

const Vector kOneToEight = {1, 2, 3, 4, 5, 6, 7, 8};

void check_pair_rotation(const json& c) {
  const Vector pair = numbers(c["pair"]);
  const Vector theta = {c["theta_radians"]};
  const Vector key = split_half(pair, theta, 2);
  const Vector query = split_half(pair, theta, 5);
  CHECK(worst_absolute(key, numbers(c["key_pos2"])) < 1e-12);
  CHECK(worst_absolute(query, numbers(c["query_pos5"])) < 1e-12);
  CHECK_THAT(std::sqrt(dot(key, key)), WithinAbs(c["norm"].get<double>(), 1e-12));
  CHECK_THAT(dot(pair, pair), WithinAbs(c["dot_unrotated"].get<double>(), 1e-12));
  CHECK_THAT(dot(query, key), WithinAbs(c["dot_pos5_pos2"].get<double>(), 1e-12));
  CHECK_THAT(dot(query, split_half(pair, theta, 3)), WithinAbs(c["dot_pos5_pos3"].get<double>(), 1e-12));
  CHECK_THAT(dot(split_half(pair, theta, 8), query), WithinAbs(c["dot_pos8_pos5"].get<double>(), 1e-12));
  // |x|^2 cos(distance theta)
  CHECK_THAT(26 * std::cos(3 * theta[0]), WithinAbs(c["closed_form"][0].get<double>(), 1e-12));
  CHECK_THAT(26 * std::cos(2 * theta[0]), WithinAbs(c["closed_form"][1].get<double>(), 1e-12));
  CHECK(worst_absolute(key, numbers(c["seed_text"]["key"])) < 5e-4);
  CHECK(worst_absolute(query, numbers(c["seed_text"]["query"])) < 5e-4);
}

void check_full_head(const json& c) {
  const Vector frequencies = numbers(c["freqs"]);
  const Vector key = split_half(kOneToEight, frequencies, 2);
  const Vector query = split_half(kOneToEight, frequencies, 5);
  CHECK(worst_absolute(key, numbers(c["key_pos2"])) < 1e-12);
  CHECK(worst_absolute(query, numbers(c["query_pos5"])) < 1e-12);
  CHECK_THAT(worst_absolute(key, numbers(c["seed_key"])), WithinAbs(c["seed_max_abs_diff"][0].get<double>(), 1e-12));
  CHECK_THAT(worst_absolute(query, numbers(c["seed_query"])),
             WithinAbs(c["seed_max_abs_diff"][1].get<double>(), 1e-12));
}

void check_standard_frequencies(const json& c) {
  const Vector inv_freq = default_inv_freq(8, 10000);
  CHECK(worst_relative(inv_freq, numbers(c["inv_freq"])) < 1e-12);
  for (std::size_t i = 0; i < inv_freq.size(); ++i) {
    CHECK_THAT(2 * inv_freq[i], WithinAbs(c["angles"][i].get<double>(), 1e-12));
    CHECK_THAT(std::cos(2 * inv_freq[i]), WithinAbs(c["cos"][i].get<double>(), 1e-12));
    CHECK_THAT(std::sin(2 * inv_freq[i]), WithinAbs(c["sin"][i].get<double>(), 1e-12));
  }
  CHECK(worst_absolute(split_half(kOneToEight, inv_freq, 2), numbers(c["rotated"])) < 1e-12);
}

void check_interleaved_equivalence(const json& c) {
  const Vector inv_freq = default_inv_freq(8, 10000);
  const auto order = c["order"].get<std::vector<std::size_t>>();
  const auto reordered = [&order](const Vector& x) {
    Vector out;
    for (const std::size_t i : order) out.push_back(x[i]);
    return out;
  };
  CHECK(worst_absolute(interleaved(reordered(kOneToEight), inv_freq, 2),
                       reordered(split_half(kOneToEight, inv_freq, 2))) < 1e-12);
  CHECK(worst_absolute(interleaved(kOneToEight, inv_freq, 2), numbers(c["interleaved_of_x_pos2"])) < 1e-12);
}

void check_sizes(const json& table, const json& saving) {
  const json& medium = table["gpt2_medium"];
  CHECK(medium["positions"].get<std::int64_t>() * medium["d"].get<std::int64_t>() ==
        medium["table"].get<std::int64_t>());
  CHECK(100000 * medium["d"].get<std::int64_t>() == table["at_100k"].get<std::int64_t>());
  const std::int64_t values = saving["context"].get<std::int64_t>() *
                              saving["channels_saved_per_table"].get<std::int64_t>() *
                              saving["tables"].get<std::int64_t>();
  CHECK(2 * values == saving["bytes_bf16"].get<std::int64_t>());
  CHECK_THAT(2 * static_cast<double>(values) / (1 << 20), WithinAbs(saving["MiB_bf16"].get<double>(), 1e-9));
  // 4 bits a value and one byte of scale for 16 of them.
  CHECK_THAT(static_cast<double>(values) * (0.5 + 1.0 / 16),
             WithinAbs(saving["bytes_nvfp4_with_block_scales"].get<double>(), 1e-9));
  CHECK_THAT(static_cast<double>(values) * (0.5 + 1.0 / 16) / (1 << 20),
             WithinAbs(saving["MiB_nvfp4"].get<double>(), 1e-9));
}

}  // namespace

void check_seed_examples(test::GoldenFile& golden) {
  check_pair_rotation(golden.take("/pair_rotation_theta_20deg"));
  check_full_head(golden.take("/full_head_mixed_frequencies"));
  check_standard_frequencies(golden.take("/standard_frequencies_pos2"));
  check_interleaved_equivalence(golden.take("/interleaved_equivalence"));
  CHECK(worst_absolute(sinusoidal_row(SinusoidalVariant::kInterleaved, 8, 2),
                       numbers(golden.take("/sinusoidal_d8_pos2"))) < 1e-12);
  check_sizes(golden.take("/gpt2_position_table_share"), golden.take("/minimax_m3_table_saving"));
  // Uniform attention over values whose first is 1: 1 / n.
  const Vector averages = numbers(golden.take("/nope_prefix_average")["values"]);
  for (std::size_t n = 1; n <= averages.size(); ++n) {
    CHECK_THAT(averages[n - 1], WithinAbs(1 / static_cast<double>(n), 1e-15));
  }
}

}  // namespace fathom::rope
