// Cosine and sine tables at long positions, and what their keys must tell apart; defects of other programs by number.

#include <ATen/Functions.h>

#include <cmath>
#include <set>
#include <vector>

#include "harness/position/angle_tables.h"
#include "harness/position/position_scheme.h"
#include "harness/rope/rope_scaling.h"
#include "tests/engine/tiny_models.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

using namespace fathom;            // NOLINT
using namespace fathom::position;  // NOLINT

namespace {

rope::RopeFrequencies frequencies_of(const std::string& method, const rope::RopeGeometry& geometry, double factor,
                                     const std::map<std::string, std::string>& options = {}) {
  return rope::scalings().at(method).make(factor, OptionSource("test", options))->frequencies(geometry, 1);
}

/// The four tables of the golden file.
rope::RopeFrequencies golden_table(const std::string& name) {
  if (name == "default_1e4") return frequencies_of("none", {128, 1e4, 4096}, 1);
  if (name == "minimax_m3") return frequencies_of("none", {64, 5e6, 1048576}, 1);
  if (name == "yarn4_1e6") return frequencies_of("yarn", {128, 1e6, 32768}, 4);
  REQUIRE(name == "llama3_8");
  return frequencies_of("llama3", {128, 5e5, 8192}, 8);
}

torch::Tensor one_position(std::int64_t position) {
  return at::full({1, 1}, position, torch::kInt64);
}

float cos_at(const AngleRows& found, std::int64_t channel) {
  return found.table.cos[found.rows.reshape(-1)[0].item<std::int64_t>()][channel].item<float>();
}

/// Half a step of float32 at the amplitude, and what one ulp of a double angle of 10^6 rad can do.
constexpr double kTableTolerance = 1e-7;

}  // namespace

TEST_CASE("T-10 T-13 T-16: tables equal double at every golden position, to 524287", "[position][tables]") {
  const auto golden = test::read_golden("rope_cos_sin_long.json");
  std::size_t checked = 0;
  for (const auto& item : golden["cases"]) {
    const rope::RopeFrequencies frequencies = golden_table(item["table"].get<std::string>());
    const auto position = item["position"].get<std::int64_t>();
    INFO(item["table"] << " at " << position);
    AngleTables tables;
    const AngleRows found = tables.rows(frequencies, one_position(position), position + 1);
    const std::int64_t row = found.rows[0][0].item<std::int64_t>();
    for (std::size_t i = 0; i < item["channels"].size(); ++i) {
      const auto channel = item["channels"][i].get<std::int64_t>();
      const double cos = item["cos_f64"][i].get<double>(), sin = item["sin_f64"][i].get<double>();
      CHECK(std::fabs(static_cast<double>(found.table.cos[row][channel].item<float>()) - cos) < kTableTolerance);
      CHECK(std::fabs(static_cast<double>(found.table.sin[row][channel].item<float>()) - sin) < kTableTolerance);
    }
    ++checked;
  }
  CHECK(checked == golden["cases"].size());
  CHECK(checked > 0);
}

TEST_CASE("T-10 T-11 T-12: neighbouring positions have rows of their own, however far out", "[position][tables]") {
  AngleTables tables;
  const rope::RopeFrequencies qwen = frequencies_of("none", {128, 1e6, 32768}, 1);
  const AngleTable& table = tables.table(qwen, 16384);
  std::set<std::vector<float>> rows;
  for (std::int64_t position = 12288; position < 16384; ++position) {
    const float* row = table.cos.data_ptr<float>() + position * 64;
    rows.emplace(row, row + 64);
  }
  CHECK(rows.size() == 4096);
  for (const std::int64_t other : {15961, 15963})
    CHECK((table.cos[15962] - table.cos[other]).abs().max().item<float>() > 0.1F);
  // fp16 tables were off by 0.78 here.
  const rope::RopeFrequencies narrow = frequencies_of("none", {32, 1e4, 2048}, 1);
  const double expected = std::cos(1857 * std::pow(1e4, -2.0 / 32));
  CHECK(std::fabs(static_cast<double>(cos_at(tables.rows(narrow, one_position(1857), 2048), 1)) - expected) <
        kTableTolerance);
}

TEST_CASE("T-17: tables stay float32 and golden where activations are bf16", "[position][tables]") {
  checkpoint::DecoderConfig config = test::tiny_config();
  const auto scheme = make_position_scheme({&config, 0, nullptr, nullptr});
  const torch::Tensor ones = at::ones({1, 1, 1, 16}, torch::kFloat32);
  const torch::Tensor far = one_position(15962);
  const torch::Tensor exact = scheme->rotate(ones, Role::kQuery, far, 16384);
  const torch::Tensor rounded = scheme->rotate(ones.to(torch::kBFloat16), Role::kQuery, far, 16384);
  CHECK(rounded.scalar_type() == torch::kBFloat16);
  // One rounding to bf16 at the end: 2^-8 of values up to sqrt(2).
  CHECK((rounded.to(torch::kFloat32) - exact).abs().max().item<float>() < 0.006F);
}

TEST_CASE("T-61: models of different scaling keep tables of their own", "[position][tables]") {
  AngleTables tables;
  const rope::RopeGeometry geometry{64, 1e4, 4096};
  const auto plain = frequencies_of("none", geometry, 1), linear = frequencies_of("linear", geometry, 4);
  auto louder = plain;
  louder.attention_factor = 1.5;
  const torch::Tensor row = at::arange(128, torch::kInt64).unsqueeze(0);
  const torch::Tensor a = tables.rows(plain, row, 128).table.cos.clone();
  const torch::Tensor b = tables.rows(linear, row, 128).table.cos, c = tables.rows(louder, row, 128).table.cos;
  const PositionMap halved{"halved", [](std::int64_t position) { return static_cast<double>(position) / 2; }};
  const torch::Tensor d = tables.rows(plain, row, 128, halved).table.cos;
  CHECK(at::equal(tables.rows(plain, row, 128).table.cos, a));
  CHECK((a - b).abs().max().item<float>() > 0.5F);
  CHECK(at::allclose(a * 1.5, c));
  CHECK(at::equal(a.narrow(0, 0, 64), d.index_select(0, at::arange(0, 128, 2, torch::kInt64))));
}

TEST_CASE("T-62: a table of N rows is the beginning of a longer one, and of rows made alone", "[position][tables]") {
  const auto yarn = frequencies_of("yarn", {64, 1e4, 256}, 4);
  AngleTables short_tables, long_tables, no_tables;
  const torch::Tensor few = short_tables.table(yarn, 300).cos.narrow(0, 0, 300);
  CHECK(at::equal(few, long_tables.table(yarn, 5000).cos.narrow(0, 0, 300)));
  short_tables.table(yarn, 5000);  // extended in place
  CHECK(at::equal(few, short_tables.table(yarn, 300).cos.narrow(0, 0, 300)));
  for (const std::int64_t position : {0, 1, 299})
    CHECK(cos_at(no_tables.rows(yarn, one_position(position), 5000), 3) == few[position][3].item<float>());
}

TEST_CASE("T-60: queries and keys shifted by the same distance score alike", "[position][tables]") {
  checkpoint::DecoderConfig config = test::tiny_config();
  config.layers[0].position.scaling.method = "yarn";
  config.layers[0].position.scaling.factor = 4;
  config.layers[0].position.rotary_dim = 8;  // half of the head stays as it is
  const auto scheme = make_position_scheme({&config, 0, nullptr, nullptr});
  const torch::Tensor q = at::linspace(-1, 1, 16, torch::kFloat32).view({1, 1, 1, 16}), k = q.flip(-1) + 0.3;
  const auto score = [&](std::int64_t shift) {
    return (scheme->rotate(q, Role::kQuery, one_position(90 + shift), 5000) *
            scheme->rotate(k, Role::kKey, one_position(17 + shift), 5000))
        .sum()
        .item<double>();
  };
  for (const std::int64_t shift : {1, 100, 4000}) CHECK(std::fabs(score(shift) - score(0)) < 1e-5);
  CHECK(std::fabs(score(0) - (q * k).sum().item<double>()) > 1e-2);
}
