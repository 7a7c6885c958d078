// What makes each scheme that scheme: reference numbers, closed forms, invariants.

#include <fmt/format.h>
#include <torch/torch.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/error.h"
#include "harness/rope/alibi_slopes.h"
#include "tests/model/model_test_data.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

namespace {

using fathom::checkpoint::DecoderConfig;
using fathom::position::LogitBlock;
using fathom::position::PositionScheme;
using fathom::position::Role;
using fathom::test::counted_positions;
using fathom::test::largest_difference;
using fathom::test::random_tensor;
using torch::Tensor;

/// A decoder of one layer with the given sizes, for its scheme.
struct SchemeShape {
  std::string name;
  std::map<std::string, std::string> options;
  std::int64_t n_heads = 2;
  std::int64_t d_head = 4;
  std::int64_t d_model = 8;
};

/// The scheme of such a decoder, and the config it refers to.
struct MadeScheme {
  DecoderConfig config;
  std::shared_ptr<PositionScheme> scheme;
  PositionScheme* operator->() const { return scheme.get(); }
  Tensor parameter(const std::string& name) const { return scheme->named_parameters()[name]; }
};

MadeScheme make_scheme(const SchemeShape& shape, std::optional<std::int64_t> window = std::nullopt) {
  MadeScheme made{fathom::test::tiny_config(shape.name), nullptr};
  made.config.d_model = shape.d_model;
  made.config.layers.resize(1);
  fathom::checkpoint::LayerSpec& layer = made.config.layers[0];
  layer.n_heads = layer.n_kv_heads = shape.n_heads;
  layer.d_head = shape.d_head;
  layer.window = window;
  layer.position.options = shape.options;
  made.scheme = fathom::position::make_position_scheme({&made.config, 0, nullptr, nullptr});
  return made;
}

void set_parameter(const MadeScheme& made, const std::string& name, const Tensor& values) {
  const torch::NoGradGuard no_grad;
  REQUIRE(made->named_parameters().contains(name));
  Tensor parameter = made.parameter(name);
  REQUIRE(parameter.numel() == values.numel());
  parameter.copy_(values.view(parameter.sizes()));
}

Tensor golden_tensor(const nlohmann::json& values) {
  if (!values.is_array()) return torch::tensor(values.get<double>(), torch::kFloat64);
  std::vector<Tensor> rows;
  for (const auto& row : values) rows.push_back(golden_tensor(row));
  return torch::stack(rows);
}

LogitBlock square_block(std::int64_t seq) {
  LogitBlock block;
  block.q_positions = block.k_positions = counted_positions(1, seq);
  return block;
}

/// Bias of one query at distances 0 .. n-1, [heads, n].
Tensor bias_at_distances(const MadeScheme& made, std::int64_t n) {
  LogitBlock block;
  block.q_positions = torch::full({1, 1}, n - 1, torch::kInt64);
  block.k_positions = counted_positions(1, n);
  return made->block_bias(block, true)[0].squeeze(1).flip(-1).detach();
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const fathom::Error& error) {
    return error.what();
  }
  return "no error";
}

Tensor causal(const Tensor& bias) {
  return bias.tril();
}

}  // namespace

TEST_CASE("sinusoidal: the three forms equal the reference tables", "[position][sinusoidal]") {
  const nlohmann::json golden = fathom::test::read_golden("sinusoidal.json");
  int n_checked = 0;
  for (const auto& item : golden["cases"]) {
    const std::string variant = item["variant"];
    if (!item.contains("values")) continue;
    const std::string form = variant.find("tensor2tensor") == 0                 ? "tensor2tensor"
                             : variant.find("interleaved") != std::string::npos ? "interleaved"
                                                                                : "concatenated";
    const std::int64_t width = item["d_model"];
    INFO(variant << " width " << width);
    const MadeScheme made = make_scheme({"sinusoidal", {{"form", form}}, 1, 4, width});
    const auto rows = item.contains("positions") ? item["positions"] : item["rows"];
    const auto positions = rows.get<std::vector<std::int64_t>>();
    const Tensor row = torch::tensor(positions).unsqueeze(0);
    Tensor got = made->embed(torch::zeros({1, row.size(1), width}), row)[0];
    if (item.contains("padding_idx") && !item["padding_idx"].is_null()) {
      // The padding row of the reference is 0; here no position stands for padding.
      const std::int64_t padding = item["padding_idx"];
      for (std::size_t i = 0; i < positions.size(); ++i) {
        if (positions[i] == padding) got[static_cast<std::int64_t>(i)] = 0;
      }
    }
    CHECK(largest_difference(got, golden_tensor(item["values"])) < 2e-6);  // the float32 of the reference
    ++n_checked;
  }
  CHECK(n_checked >= 6);
}

TEST_CASE("sinusoidal: offset, amplitude and the scale of embeddings", "[position][sinusoidal]") {
  const MadeScheme plain = make_scheme({"sinusoidal", {}});
  const MadeScheme moved =
      make_scheme({"sinusoidal", {{"offset", "2"}, {"amplitude", "0.5"}, {"scale_embedding", "on"}}});
  const Tensor x = random_tensor({2, 5, 8}, 1), positions = counted_positions(2, 5);
  const Tensor table = plain->embed(torch::zeros_like(x), positions + 2);
  CHECK(largest_difference(moved->embed(x, positions), x * std::sqrt(8.0) + table * 0.5) < 1e-6);
  // A row of its own for each batch row, a million tokens out.
  const Tensor far = torch::tensor({1048575, 3}).view({2, 1});
  const Tensor row = plain->embed(torch::zeros({2, 1, 8}), far);
  CHECK(std::abs(row[0][0][0].item<double>() - std::sin(1048575.0)) < 1e-6);
  CHECK(std::abs(row[1][0][1].item<double>() - std::cos(3.0)) < 1e-6);
}

TEST_CASE("learned: OPT's offset leaves its first rows unused", "[position][learned]") {
  const MadeScheme made = make_scheme({"learned", {{"positions", "5"}, {"offset", "2"}}});
  set_parameter(made, "position_embedding", torch::arange(7 * 8, torch::kFloat32));
  const Tensor got = made->embed(torch::zeros({1, 5, 8}), counted_positions(1, 5));
  CHECK(torch::equal(got[0], torch::arange(7 * 8, torch::kFloat32).view({7, 8}).slice(0, 2)));
  CHECK(made->max_positions() == 5);
  CHECK(error_of([&] {
          made->embed(torch::zeros({1, 6, 8}), counted_positions(1, 6));
        }).find("position 5 is past the table of 5 rows") != std::string::npos);
}

TEST_CASE("t5: buckets equal the reference at every distance", "[position][t5]") {
  int n_checked = 0;
  const nlohmann::json golden = fathom::test::read_golden("t5_buckets.json");
  for (const auto& item : golden["cases"]) {
    // Encoders, and keys of the future, have no bias here.
    if (item["bidirectional"].get<bool>() || item["distances"].get<std::string>().find("future") == 0) continue;
    const std::int64_t buckets = item["num_buckets"];
    const MadeScheme made = make_scheme({"t5",
                                         {{"buckets", std::to_string(buckets)},
                                          {"max_distance", std::to_string(item["max_distance"].get<std::int64_t>())}}});
    INFO("buckets " << buckets << " max_distance " << item["max_distance"]);
    set_parameter(made, "table",
                  torch::arange(buckets, torch::kFloat32).unsqueeze(1).expand({buckets, 2}).contiguous());
    const Tensor expected = golden_tensor(item["buckets"]);
    const Tensor got = bias_at_distances(made, expected.size(0));
    CHECK(largest_difference(got[1], expected) == 0);
    ++n_checked;
  }
  CHECK(n_checked >= 4);
}

TEST_CASE("t5: one table serves all layers, or each has its own", "[position][t5]") {
  for (const bool shared : {true, false}) {
    DecoderConfig config = fathom::test::tiny_config("t5");
    for (auto& layer : config.layers) layer.position.options["shared"] = shared ? "on" : "off";
    auto decoder = fathom::test::make_tiny_decoder(config);
    CHECK(decoder->named_parameters().contains("layers.0.position.table"));
    CHECK(decoder->named_parameters().contains("layers.1.position.table") == !shared);
    const Tensor first = decoder->scheme(0).block_bias(square_block(9), true);
    const Tensor second = decoder->scheme(1).block_bias(square_block(9), true);
    CHECK(torch::equal(first, second) == shared);
  }
  // Layers after one of another kind cannot share with it.
  DecoderConfig mixed = fathom::test::tiny_config("t5");
  mixed.layers[0].position.kind = "nope";
  CHECK(fathom::test::make_tiny_decoder(mixed)->named_parameters().contains("layers.1.position.table"));
}

TEST_CASE("inkling: the bias equals the reference, whole and decoded, and is exactly 0 beyond the extent",
          "[position][inkling]") {
  const nlohmann::json golden = fathom::test::read_golden("inkling_relative_bias.json");
  const std::int64_t d_rel = golden["params"]["d_rel"], extent = golden["params"]["rel_extent"];
  const std::int64_t heads = golden["params"]["heads"], seq = golden["params"]["seq"];
  const MadeScheme made = make_scheme(
      {"inkling", {{"d_rel", std::to_string(d_rel)}, {"extent", std::to_string(extent)}}, heads, 4, heads * d_rel});
  set_parameter(made, "state", torch::eye(heads * d_rel));
  set_parameter(made, "curves", golden_tensor(golden["proj"]));
  LogitBlock block = square_block(seq);
  block.q_hidden = golden_tensor(golden["relative_states"]).view({1, seq, heads * d_rel}).to(torch::kFloat32);
  const Tensor bias = made->block_bias(block, true)[0].detach();
  CHECK(largest_difference(bias, golden_tensor(golden["bias"])) < 1e-6);
  CHECK(bias[0][3][0].item<double>() == 0);
  LogitBlock decoded = block;
  decoded.q_positions = block.q_positions.narrow(1, seq - 1, 1);
  decoded.q_hidden = block.q_hidden.narrow(1, seq - 1, 1);
  CHECK(largest_difference(made->block_bias(decoded, true)[0].squeeze(1), golden_tensor(golden["decode_row_query3"])) <
        1e-6);
  // Keys that are all beyond the extent: T-70 with a far block.
  decoded.q_positions = decoded.q_positions + 100;
  CHECK(made->block_bias(decoded, true).abs().max().item<double>() == 0);
}

TEST_CASE("inkling: log scaling multiplies query and bias, in layers without a window", "[position][inkling]") {
  const nlohmann::json golden = fathom::test::read_golden("inkling_relative_bias.json")["log_scaling"]["values"];
  REQUIRE(golden.size() >= 16);
  for (const auto& item : golden) {
    const std::map<std::string, std::string> options{
        {"extent", "8"},
        {"log_scaling_floor", std::to_string(item["floor"].get<std::int64_t>())},
        {"log_scaling_alpha", fmt::format("{}", item["alpha"].get<double>())}};
    const MadeScheme made = make_scheme({"inkling", options}), plain = make_scheme({"inkling", {{"extent", "8"}}});
    const Tensor positions = torch::full({1, 1}, item["query_position"].get<std::int64_t>(), torch::kInt64);
    const double tau = item["tau"];
    CHECK(std::abs(made->query_scale(positions).item<double>() - tau) < 1e-6);
    LogitBlock block{positions, positions, {}, {}, random_tensor({1, 1, 8}, 3), {}};
    for (const MadeScheme* each : {&made, &plain}) {
      set_parameter(*each, "state", random_tensor({32, 8}, 1));
      set_parameter(*each, "curves", random_tensor({16, 8}, 2));
    }
    CHECK(largest_difference(made->block_bias(block, true), plain->block_bias(block, true) * tau) < 1e-5);
    CHECK_FALSE(make_scheme({"inkling", options}, 64)->query_scale(positions).defined());
  }
}

TEST_CASE("xpos: products equal the reference", "[position][xpos]") {
  const nlohmann::json golden = fathom::test::read_golden("other_position_schemes.json")["xpos"];
  const Tensor x = golden_tensor(golden["x"]).to(torch::kFloat32);
  const std::int64_t seq = x.size(0), d_head = golden["head_dim"];
  const MadeScheme made = make_scheme(
      {"xpos", {{"scale_base", std::to_string(golden["scale_base"].get<std::int64_t>())}}, 1, d_head, d_head});
  const auto turned = [&](Role role) {
    return made->rotate(x.view({1, seq, 1, d_head}), role, counted_positions(1, seq), seq).view({seq, d_head});
  };
  const Tensor expected = golden_tensor(golden["q_out"]).matmul(golden_tensor(golden["k_out"]).t());
  CHECK(largest_difference(turned(Role::kQuery).matmul(turned(Role::kKey).t()), expected) < 1e-5);
}

TEST_CASE("xpos: products depend on the distance only and decay, across centres and at the longest sequence",
          "[position][xpos]") {
  const MadeScheme made = make_scheme({"xpos", {}, 1, 8, 8});
  const Tensor q = random_tensor({1, 1, 1, 8}, 1), k = random_tensor({1, 1, 1, 8}, 2);
  const auto product = [&](std::int64_t at_q, std::int64_t at_k, std::int64_t total_len) {
    const auto turned = [&](const Tensor& x, Role role, std::int64_t position) {
      return made->rotate(x, role, torch::full({1, 1}, position, torch::kInt64), total_len);
    };
    return (turned(q, Role::kQuery, at_q) * turned(k, Role::kKey, at_k)).sum().item<double>();
  };
  const double near = product(100, 60, 256);
  CHECK(std::abs(near) > 1e-2);
  for (const std::int64_t total : {4096, 4097, 32768, 65536}) {
    CHECK(std::abs(product(100, 60, total) - near) < 1e-5);
    CHECK(std::abs(product(total - 1, total - 41, total) - near) < 1e-4);  // float32 cosines far out
  }
  CHECK(made->rotation_state(4096) == made->rotation_state(1));
  CHECK(made->rotation_state(4097) != made->rotation_state(4096));
  // zeta_0^(2048 / 512) = 0.0067 of the first channels is left after 2,048 tokens.
  const Tensor unit = torch::zeros({1, 1, 1, 8}).index_fill(-1, torch::tensor({0, 1}), 1.0);
  const auto lengths = [&](std::int64_t position, Role role) {
    return made->rotate(unit, role, torch::full({1, 1}, position, torch::kInt64), 4096).norm().item<double>();
  };
  CHECK(std::abs(lengths(2048 + 7, Role::kQuery) * lengths(7, Role::kKey) / 2 - std::pow(0.4 / 1.4, 4)) < 1e-6);
}

TEST_CASE("kerple: both kinds equal the formula's worked values, and parameters are bounded", "[position][kerple]") {
  const nlohmann::json golden = fathom::test::read_golden("other_position_schemes.json")["kerple"]["values"];
  REQUIRE(golden.size() >= 6);
  for (const auto& item : golden) {
    const MadeScheme made = make_scheme({"kerple", {{"kind", item["kind"].get<std::string>()}}, 1});
    set_parameter(made, "p", torch::full({1}, item["p"].get<double>()));
    set_parameter(made, "a", torch::full({1}, item["a"].get<double>()));
    const Tensor bias = bias_at_distances(made, 1025)[0];
    for (std::size_t n = 0; n < item["distance"].size(); ++n) {
      const double expected = item["bias"][n];
      CHECK(std::abs(bias[item["distance"][n].get<std::int64_t>()].item<double>() - expected) <
            1e-6 * (1 + std::abs(expected)));
    }
  }
  const MadeScheme low = make_scheme({"kerple", {{"kind", "power"}}, 1});
  set_parameter(low, "p", torch::full({1}, 7.0));   // counts as 2
  set_parameter(low, "a", torch::full({1}, -3.0));  // counts as 0.01
  CHECK(std::abs(bias_at_distances(low, 11)[0][10].item<double>() + 1.0) < 1e-6);
}

TEST_CASE("fire: the bias equals the reference, fused and in double", "[position][fire]") {
  const nlohmann::json golden = fathom::test::read_golden("other_position_schemes.json")["fire"];
  const nlohmann::json& params = golden["params"];
  const std::int64_t heads = params["heads"], seq = params["seq"];
  const Tensor expected = causal(golden_tensor(golden["bias"]));
  const MadeScheme made = make_scheme({"fire", {{"width", "2"}}, heads});
  set_parameter(made, "in_weight", golden_tensor(params["mlp_in_weight"]));
  set_parameter(made, "in_bias", golden_tensor(params["mlp_in_bias"]));
  set_parameter(made, "out_weight", golden_tensor(params["mlp_out_weight"]));
  set_parameter(made, "out_bias", golden_tensor(params["mlp_out_bias"]));
  set_parameter(made, "c", golden_tensor(params["c"]).view({1}));
  set_parameter(made, "threshold", (golden_tensor(params["L"]) * golden_tensor(params["L_multiplier"])).view({1}));
  CHECK(largest_difference(causal(made->block_bias(square_block(seq), true)[0].detach()), expected) < 1e-6);
  made->to(torch::kFloat64);
  CHECK(largest_difference(causal(made->block_bias(square_block(seq), true)[0].detach()), expected) < 1e-6);
}

TEST_CASE("cope: the bias equals the reference, and the gates' scale is an option", "[position][cope]") {
  const nlohmann::json golden = fathom::test::read_golden("other_position_schemes.json")["cope"];
  const Tensor vectors = golden_tensor(golden["pos_emb"]), logits = golden_tensor(golden["logits"]);
  const std::int64_t seq = logits.size(0), npos = vectors.size(0);
  // The sample's gates come of given logits. Keys that produce them exist: q k^T = logits with q a basis.
  const Tensor q = golden_tensor(golden["q"]).to(torch::kFloat32);
  const Tensor k = at::linalg_solve(golden_tensor(golden["q"]), logits).t().to(torch::kFloat32);
  for (const bool scaled : {false, true}) {
    const MadeScheme made =
        make_scheme({"cope", {{"npos", std::to_string(npos)}, {"scale_gates", scaled ? "on" : "off"}}, 1, q.size(1)});
    set_parameter(made, "vectors", vectors);
    LogitBlock block = square_block(seq);
    block.q = q.view({1, 1, seq, q.size(1)});
    block.k = k.view({1, 1, seq, q.size(1)}) * (scaled ? std::sqrt(static_cast<double>(q.size(1))) : 1.0);
    const Tensor bias = made->block_bias(block, true)[0].detach();
    CHECK(largest_difference(causal(bias[0]), causal(golden_tensor(golden["bias"]))) < 2e-5);
  }
}

TEST_CASE("grape_m: the rotation equals the matrix exponential and keeps the relative law", "[position][grape_m]") {
  const nlohmann::json golden = fathom::test::read_golden("other_position_schemes.json")["grape_m"];
  const MadeScheme made = make_scheme({"grape_m", {{"planes", "1"}}, 1, 4, 4});
  // exp(n w L) with w inside the generator: a is multiplied by it.
  set_parameter(made, "a", golden_tensor(golden["a"]) * golden["omega"].get<double>());
  set_parameter(made, "b", golden_tensor(golden["b"]));
  const auto matrix = [&](std::int64_t n) {
    const Tensor unit = torch::eye(4).view({1, 4, 1, 4});  // four vectors, all at position n
    return made->rotate(unit, Role::kKey, torch::full({1, 4}, n, torch::kInt64), n + 1).view({4, 4}).t().detach();
  };
  CHECK(largest_difference(matrix(golden["n"]), golden_tensor(golden["G"])) < 1e-6);
  CHECK(largest_difference(matrix(5).t().matmul(matrix(12)), matrix(7)) < 1e-6);
  CHECK(largest_difference(matrix(100000).t().matmul(matrix(100007)), matrix(7)) < 1e-5);
}

TEST_CASE("grape_m: unit vectors in pairs of channels are RoPE", "[position][grape_m]") {
  const MadeScheme grape = make_scheme({"grape_m", {}, 2, 8, 16});
  const Tensor pair = torch::eye(2).to(torch::kFloat32);
  set_parameter(grape, "a", pair[0].repeat({2, 4}).contiguous());
  set_parameter(grape, "b", pair[1].repeat({2, 4}).contiguous());
  MadeScheme rope{fathom::test::tiny_config("rope"), nullptr};
  rope.config.layers[0].position.rope_base = 10000;
  rope.config.layers[0].position.layout = fathom::checkpoint::RopeLayout::kInterleaved;
  rope.scheme = fathom::position::make_position_scheme({&rope.config, 0, nullptr, nullptr});
  const Tensor x = random_tensor({1, 50, 2, 8}, 1), y = random_tensor({1, 50, 2, 8}, 2);
  const auto products = [&](const MadeScheme& made) {
    const Tensor q = made->rotate(x, Role::kQuery, counted_positions(1, 50), 50).transpose(1, 2);
    return q.matmul(made->rotate(y, Role::kKey, counted_positions(1, 50), 50).transpose(1, 2).transpose(-1, -2))
        .detach();
  };
  // GRAPE turns the other way round: scores at distance d are RoPE's with the pairs mirrored, so mirror the inputs.
  const Tensor mirror = torch::tensor({1.0, -1.0}).repeat({4}).to(torch::kFloat32);
  const Tensor q = rope->rotate(x * mirror, Role::kQuery, counted_positions(1, 50), 50).transpose(1, 2);
  const Tensor k = rope->rotate(y * mirror, Role::kKey, counted_positions(1, 50), 50).transpose(1, 2);
  CHECK(largest_difference(products(grape), q.matmul(k.transpose(-1, -2))) < 1e-5);
}

TEST_CASE("grape_m: planes that do not divide the head are refused", "[position][grape_m]") {
  CHECK(error_of([] {
          make_scheme({"grape_m", {{"planes", "3"}}, 1, 8, 8});
        }) == "position scheme grape_m: planes = 3 must divide d_head = 8 into parts of at least 2 channels");
}

TEST_CASE("grape_a: a decay equal to ALiBi's slopes is ALiBi, and gates add up from key to query",
          "[position][grape_a]") {
  const MadeScheme grape = make_scheme({"grape_a", {}, 4}), alibi = make_scheme({"alibi", {}, 4});
  const std::vector<double> slopes = fathom::rope::alibi_slopes(4);
  set_parameter(grape, "decay", torch::tensor(slopes).expm1().log());
  CHECK(largest_difference(bias_at_distances(grape, 200), bias_at_distances(alibi, 200)) < 1e-5);

  const MadeScheme gated = make_scheme({"grape_a", {{"gate", "on"}}, 2});
  const Tensor weight = random_tensor({2, 4}, 1), offset = random_tensor({2}, 2), k = random_tensor({1, 2, 6, 4}, 3);
  set_parameter(gated, "gate_weight", weight);
  set_parameter(gated, "gate_bias", offset);
  LogitBlock block = square_block(6);
  block.q = random_tensor({1, 2, 6, 4}, 4);
  block.k = k;
  const Tensor bias = gated->block_bias(block, true)[0].detach();
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t i = 0; i < 6; ++i) {
      double sum = 0;
      for (std::int64_t j = i; j >= 0; --j) {
        CHECK(std::abs(bias[h][i][j].item<double>() - sum) < 1e-5);
        const double z = (k[0][h][j] * weight[h]).sum().item<double>() + offset[h].item<double>();
        sum += std::log(1 / (1 + std::exp(-z)));
      }
    }
  }
}

TEST_CASE("alibi: T-66, T-67: BLOOM's form per key differs from the distance form by a constant per query",
          "[position][alibi]") {
  const nlohmann::json golden = fathom::test::read_golden("alibi.json")["examples"][0];
  const MadeScheme made = make_scheme({"alibi", {}, 4, 8, 32});
  for (std::size_t row = 0; row < golden["attention_mask"].size(); ++row) {
    const Tensor mask = golden_tensor(golden["attention_mask"][row]);
    const std::int64_t n = mask.sum().item<std::int64_t>(), padding = mask.size(0) - n;
    const Tensor by_key = golden_tensor(golden["bias"][row]).slice(1, padding);  // [heads, n], the real tokens
    const Tensor ours = made->block_bias(square_block(n), true)[0].to(torch::kFloat64);
    // The raw convention: 0 on the diagonal, so that neither form is one key off.
    CHECK(ours.diagonal(0, 1, 2).abs().max().item<double>() == 0);
    const Tensor logits = random_tensor({4, n, n}, 5, torch::kFloat64);
    const Tensor future = torch::ones({n, n}, torch::kBool).triu(1);
    const auto probabilities = [&](const Tensor& bias) {
      return (logits + bias).masked_fill(future, -std::numeric_limits<double>::infinity()).softmax(-1);
    };
    CHECK(largest_difference(probabilities(ours), probabilities(by_key.unsqueeze(1))) < 1e-12);
  }
}

TEST_CASE("alibi: MPT's form for six heads differs by a constant too, and slopes are those of the query heads",
          "[position][alibi]") {
  const Tensor mpt = golden_tensor(fathom::test::read_golden("alibi.json")["examples"][2]["bias"]);  // [6, 4]
  const MadeScheme made = make_scheme({"alibi", {}, 6, 4, 24});
  const Tensor last_row = made->block_bias(square_block(4), true)[0].select(1, 3);
  CHECK(largest_difference(last_row, mpt) < 1e-7);  // relative to the last key, as MPT has it
}

TEST_CASE("alibi: Falcon's form is rounded to bf16 and divided with the logits", "[position][alibi]") {
  const MadeScheme made = make_scheme({"alibi", {{"before_scale", "on"}}, 2, 16, 32});
  const Tensor bias = made->block_bias(square_block(300), true)[0];
  CHECK(bias.sizes() == torch::IntArrayRef({2, 300, 300}));
  const auto rounded = [](double x) { return torch::tensor(x).to(torch::kBFloat16).item<double>(); };
  for (const std::int64_t key : {1, 7, 131, 299}) {
    const double expected = rounded(rounded(0.0625) * rounded(static_cast<double>(key))) / 4;  // slope 2^-4, sqrt(16)
    CHECK(bias[0][299][key].item<double>() == expected);
    CHECK(bias[0][0][key].item<double>() == expected);  // the same for all queries
  }
  CHECK(rounded(299.0) != 299.0);
}
