// Tables of cosines and sines in the model's dtype, as other engines keep them, and what bf16 activations may cost;
// defects of other programs by number.

#include <ATen/Functions.h>

#include <cmath>
#include <vector>

#include "harness/checkpoint/position_override.h"
#include "harness/engine/probe.h"
#include "harness/engine/torch_language_model.h"
#include "harness/position/angle_tables.h"
#include "harness/position/position_scheme.h"
#include "tests/engine/tiny_models.h"
#include "tests/support/catch.h"

using namespace fathom;            // NOLINT
using namespace fathom::engine;    // NOLINT
using namespace fathom::position;  // NOLINT
using rope::FloatFormat;

namespace {

torch::Dtype torch_dtype(FloatFormat format) {
  return format == FloatFormat::kBfloat16 ? torch::kBFloat16 : torch::kHalf;
}

torch::Tensor cast(const torch::Tensor& table, FloatFormat format) {
  return table.to(torch_dtype(format)).to(torch::kFloat32);
}

rope::RopeFrequencies list_of(const std::string& method, double factor, FloatFormat format) {
  rope::RopeFrequencies out =
      rope::scalings().at(method).make(factor, OptionSource("test", {}))->frequencies({64, 1e4, 256}, 1);
  out.table_dtype = format;
  return out;
}

torch::Tensor counted(std::int64_t n) {
  return at::arange(n, torch::kInt64).unsqueeze(0);
}

/// A tiny model with L0 = 64 whose tables have a format.
checkpoint::DecoderConfig with_tables(FloatFormat format, checkpoint::PositionOverride change = {}) {
  change.table_dtype = format;
  return checkpoint::apply_override(test::tiny_config(), change);
}

std::vector<double> logprobs(const checkpoint::DecoderConfig& config, const TokenIds& ids) {
  const test::RandomCheckpoint checkpoint(config);
  return probe_logits(load_weights(checkpoint, {}), config, {}, ids).next_logprobs;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::fabs(a[i] - b[i]));
  return worst;
}

/// Log-probabilities of ids[1..]: a prompt of k ids, the others fed through its cache.
std::vector<double> split_logprobs(const checkpoint::DecoderConfig& config, const TokenIds& ids, std::int64_t k) {
  const test::RandomCheckpoint checkpoint(config);
  const auto model = make_language_model(load_weights(checkpoint, {}), config, {});
  lm::Request request;
  request.prompt.assign(ids.begin(), ids.begin() + k);
  request.continuations = {{k, TokenIds(ids.begin() + k, ids.end())}};
  const auto completion = model->complete({request}).front();
  REQUIRE(completion.error.empty());
  return completion.continuations.front().logprobs;
}

}  // namespace

TEST_CASE("T-15: a narrow table is the float32 table after a cast, bit for bit", "[position][tables]") {
  const auto format = GENERATE(FloatFormat::kBfloat16, FloatFormat::kFloat16);
  for (const char* method : {"none", "yarn"}) {  // YaRN's amplitude is multiplied in before the cast
    INFO(method << " " << rope::to_string(format));
    const auto single = list_of(method, method == std::string("none") ? 1 : 4, FloatFormat::kFloat32);
    auto narrow = single;
    narrow.table_dtype = format;
    AngleTables tables;  // one cache: the format is part of a table's key
    const AngleTable whole = tables.rows(single, counted(4096), 4096).table;
    const AngleTable rounded = tables.rows(narrow, counted(4096), 4096).table;
    CHECK(at::equal(rounded.cos, cast(whole.cos, format)));
    CHECK(at::equal(rounded.sin, cast(whole.sin, format)));
    CHECK_FALSE(at::equal(rounded.cos, whole.cos));
    const torch::Tensor far = at::full({1, 1}, 1000003, torch::kInt64);  // rows made alone
    CHECK(at::equal(tables.rows(narrow, far, 1000004).table.cos,
                    cast(tables.rows(single, far, 1000004).table.cos, format)));
    CHECK(rotation_identity(single) != rotation_identity(narrow));
  }
}

TEST_CASE("T-15: bf16 tables are those of an engine that makes them in float32 and casts them", "[position][tables]") {
  AngleTables tables;
  const torch::Tensor ours = tables.rows(list_of("none", 1, FloatFormat::kBfloat16), counted(512), 512).table.cos;
  // 1 / base^(2i/r), the product with the position and its cosine, all float32.
  const torch::Tensor inv_freq = 1 / at::pow(1e4, at::arange(0, 64, 2, torch::kFloat32) / 64);
  const torch::Tensor angles = at::arange(512, torch::kFloat32).unsqueeze(1) * inv_freq;
  const torch::Tensor theirs = cast(angles.cos(), FloatFormat::kBfloat16);
  const torch::Tensor table = ours.narrow(0, 0, 512);
  // Float32 angles of 512 rad are off by 3e-5, a step of bf16 near 1 is 4e-3: few values lie between.
  CHECK(table.eq(theirs).to(torch::kFloat32).mean().item<double>() > 0.995);
  CHECK((table - theirs).abs().max().item<double>() <= 1.0 / 256);
}

TEST_CASE("T-15: prefill and decoding read the same narrow table, under scalings and remaps", "[engine][tables]") {
  const auto format = GENERATE(FloatFormat::kBfloat16, FloatFormat::kFloat16);
  const TokenIds ids = test::random_ids(90, 4);
  for (const std::string name : {"none", "yarn", "dynamic", "self_extend"}) {
    INFO(name << " " << rope::to_string(format));
    checkpoint::PositionOverride change;
    if (name == "self_extend") {
      change.remap = checkpoint::RemapSpec{name, {}};
    } else {
      change.scaling = name;
      change.factor = name == "none" ? 1 : 4;
    }
    const checkpoint::DecoderConfig config = with_tables(format, change);
    // Teacher forcing feeds all but the last id, which a length-dependent table can tell.
    const std::vector<double> whole = logprobs(config, TokenIds(ids.begin(), ids.end() - 1));
    for (const std::int64_t k : {1, 40, 64, 80}) {
      const std::vector<double> tail(whole.begin() + (k - 1), whole.end());
      std::vector<double> fed = split_logprobs(config, ids, k);
      fed.pop_back();
      CHECK(largest_difference(fed, tail) < 2e-5);  // float32, sums in another order
    }
    const double effect =
        largest_difference(logprobs(config, ids), logprobs(with_tables(FloatFormat::kFloat32, change), ids));
    CHECK(effect > 1e-5);
    CHECK(effect < 0.1);
  }
  const checkpoint::DecoderConfig config = with_tables(format);
  const test::RandomCheckpoint checkpoint(config);
  const std::string identity = make_language_model(load_weights(checkpoint, {}), config, {})->identity().position;
  CHECK(identity.find(" table_dtype=" + std::string(rope::to_string(format))) != std::string::npos);
}

TEST_CASE("T-14: with bf16 activations a rotation rounds once, and scores keep within the budget",
          "[position][tables]") {
  const checkpoint::DecoderConfig config = test::tiny_config();
  const auto scheme = make_position_scheme({&config, 0, nullptr, nullptr});
  const torch::Tensor positions = counted(64) + 15900;
  const torch::Tensor x =
      at::sin(at::arange(64 * 16, torch::kFloat32) * 1.7F).view({1, 64, 1, 16}).to(torch::kBFloat16);
  const torch::Tensor y = x.flip(1).contiguous();
  const auto rotated = [&](const torch::Tensor& part, Role role) {
    return scheme->rotate(part, role, positions, 16384);
  };
  const torch::Tensor q = rotated(x, Role::kQuery), k = rotated(y, Role::kKey);
  const torch::Tensor exact_q = rotated(x.to(torch::kFloat32), Role::kQuery);
  const torch::Tensor exact_k = rotated(y.to(torch::kFloat32), Role::kKey);
  CHECK(at::equal(q, exact_q.to(torch::kBFloat16)));
  CHECK(at::equal(k, exact_k.to(torch::kBFloat16)));
  const double u = rope::unit_roundoff(FloatFormat::kBfloat16);
  const auto as_double = [](const torch::Tensor& t) { return t.to(torch::kDouble).view({64, 16}); };
  const torch::Tensor error = (as_double(q) * as_double(k)).sum(1) - (as_double(exact_q) * as_double(exact_k)).sum(1);
  const torch::Tensor budget = (as_double(exact_q) * as_double(exact_k)).abs().sum(1) * (2 * u + u * u);
  CHECK((error.abs() <= budget + 1e-12).all().item<bool>());
}
