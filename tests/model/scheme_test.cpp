// What makes the first schemes those schemes, and the decoder around them. The promises that every scheme keeps are
// tested in scheme_conformance_test.cpp.

#include <torch/torch.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "harness/core/error.h"
#include "harness/model/weights.h"
#include "harness/position/rotation.h"
#include "harness/text/word_tokenizer.h"
#include "tests/model/model_test_data.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

namespace {

using fathom::checkpoint::DecoderConfig;
using fathom::model::DecoderLm;
using fathom::model::ForwardInput;
using fathom::test::counted_positions;
using fathom::test::largest_difference;
using fathom::test::make_tiny_decoder;
using fathom::test::random_tensor;
using fathom::test::tiny_config;

torch::Tensor tiny_ids(std::int64_t batch, std::int64_t seq) {
  return (torch::arange(batch * seq, torch::kInt64) * 7 % 40).view({batch, seq});
}

ForwardInput tiny_input(const torch::Tensor& ids) {
  return {ids, counted_positions(ids.size(0), ids.size(1)), {}, {}};
}

torch::Tensor all_logits(DecoderLm& decoder, const torch::Tensor& ids) {
  const torch::Tensor hidden = decoder.hidden(tiny_input(ids));
  return decoder.logits(hidden.view({-1, hidden.size(2)})).view({ids.size(0), ids.size(1), -1});
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const fathom::ModelError& error) {
    return error.what();
  }
  return "no ModelError";
}

}  // namespace

TEST_CASE("rope: T-52, T-54: layouts, partial width and attention factor equal the reference, in order of output",
          "[position][rope]") {
  using fathom::checkpoint::RopeLayout;
  const nlohmann::json golden = fathom::test::read_golden("rope_apply.json");
  const auto tensor = [](const nlohmann::json& values) {
    return torch::tensor(values.get<std::vector<double>>())
        .to(torch::kFloat32)
        .view({1, 2, 5, 8})
        .transpose(1, 2)
        .contiguous();
  };
  const torch::Tensor positions = torch::tensor(golden["positions"].get<std::vector<std::int64_t>>()).view({1, 5});
  int n_checked = 0;
  for (const auto& item : golden["cases"]) {
    const std::string name = item["name"];
    INFO(name);
    fathom::rope::RopeFrequencies frequencies;
    const auto rotary_dim = item.value("rotary_dim", std::int64_t{8});
    for (std::int64_t i = 0; i < rotary_dim / 2; ++i) {
      frequencies.inv_freq.push_back(
          item.contains("inv_freq")
              ? item["inv_freq"][static_cast<std::size_t>(i)].get<double>()
              : std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(rotary_dim)));
    }
    frequencies.attention_factor = item.value("attention_factor", 1.0);
    const RopeLayout layout = name == "interleaved_deinterleaved_output"      ? RopeLayout::kInterleavedInSplitOut
                              : name.find("interleaved") != std::string::npos ? RopeLayout::kInterleaved
                                                                              : RopeLayout::kSplitHalf;
    fathom::position::AngleTables tables;
    const auto& table = tables.table(frequencies, 101);
    for (const char* which : {"q", "k"}) {
      const torch::Tensor out =
          fathom::position::apply_rotation(tensor(golden[which]), positions, table, {layout, 0, rotary_dim});
      CHECK(largest_difference(out, tensor(item[std::string(which) + "_out"])) <
            1e-5);  // the golden file's own tolerance
      ++n_checked;
    }
  }
  CHECK(n_checked == 12);
}

TEST_CASE("rope: the gradient of a rotation is the rotation backwards, in every layout and dtype", "[position][rope]") {
  using fathom::checkpoint::RopeLayout;
  fathom::rope::RopeFrequencies frequencies{{1.0, 0.3, 0.01}, 1.25, 1.0};
  fathom::position::AngleTables tables;
  const auto& table = tables.table(frequencies, 64);
  for (const RopeLayout layout :
       {RopeLayout::kSplitHalf, RopeLayout::kInterleaved, RopeLayout::kInterleavedInSplitOut}) {
    for (const std::int64_t begin : {0, 2}) {  // a prefix and a suffix of 6 of 8 channels
      const torch::Tensor single = random_tensor({2, 5, 3, 8}, 5).requires_grad_();
      const torch::Tensor twice = single.detach().to(torch::kFloat64).requires_grad_();
      const torch::Tensor positions = counted_positions(2, 5) + 40;
      const torch::Tensor weights = random_tensor({2, 5, 3, 8}, 6);
      const torch::Tensor out = fathom::position::apply_rotation(single, positions, table, {layout, begin, 6});
      const torch::Tensor reference = fathom::position::apply_rotation(twice, positions, table, {layout, begin, 6});
      CHECK(largest_difference(out, reference) < 1e-6);
      (out * weights).sum().backward();
      (reference * weights).sum().backward();
      CHECK(largest_difference(single.grad(), twice.grad()) < 1e-6);
      // Linear map: <rotate(x), w> = <x, gradient>.
      CHECK(std::abs((out * weights).sum().item<double>() - (single * single.grad()).sum().item<double>()) < 1e-4);
    }
  }
}

TEST_CASE("rope: scores depend on the distance only", "[position][rope]") {
  auto decoder = make_tiny_decoder(tiny_config("rope"));
  fathom::position::PositionScheme& scheme = decoder->scheme(0);
  const torch::Tensor q = random_tensor({1, 6, 4, 8}, 1), k = random_tensor({1, 6, 2, 8}, 2);
  const auto scores = [&](std::int64_t shift) {
    const torch::Tensor positions = counted_positions(1, 6) + shift;
    const torch::Tensor turned_q =
        scheme.rotate(q, fathom::position::Role::kQuery, positions, 6 + shift).transpose(1, 2);
    const torch::Tensor turned_k =
        scheme.rotate(k, fathom::position::Role::kKey, positions, 6 + shift).transpose(1, 2).repeat_interleave(2, 1);
    return turned_q.matmul(turned_k.transpose(-1, -2));
  };
  CHECK(largest_difference(scores(0), scores(50000)) < 1e-5);
}

TEST_CASE("rope: tables stay exact a million tokens out", "[position][rope]") {
  fathom::position::AngleTables tables;
  const double frequency = std::pow(10000.0, -2.0 / 64.0);
  const auto& table = tables.table({{1.0, frequency}, 1.0, 1.0}, 1 << 20);
  const std::int64_t position = (1 << 20) - 1;
  const long double angle = std::fmod(static_cast<long double>(position) * static_cast<long double>(frequency),
                                      6.283185307179586476925286766559L);
  CHECK(std::abs(table.cos[position][1].item<double>() - static_cast<double>(std::cos(angle))) < 1e-7);
  CHECK(std::abs(table.sin[position][1].item<double>() - static_cast<double>(std::sin(angle))) < 1e-7);
}

TEST_CASE("rope: a rotated width that is odd or wider than the head is refused", "[position][rope]") {
  DecoderConfig config = tiny_config("rope");
  config.layers[1].position.rotary_dim = 10;
  CHECK(message_of([&] { DecoderLm(config, torch::kFloat32); }) ==
        "position scheme rope: layer 1: rotary_dim = 10 must be even and within 2..8 (d_head)");
}

TEST_CASE("alibi: the bias equals the published matrix", "[position][alibi]") {
  DecoderConfig config = tiny_config("alibi");
  for (auto& layer : config.layers) layer.n_heads = 2;
  auto decoder = make_tiny_decoder(config);
  fathom::position::LogitBlock block;
  block.q_positions = block.k_positions = counted_positions(1, 4);
  const torch::Tensor bias = decoder->scheme(0).block_bias(block, true);
  const nlohmann::json expected = fathom::test::read_golden("alibi.json")["examples"][1]["bias"];
  int n_checked = 0;
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t i = 0; i < 4; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) {
        const double value =
            expected[static_cast<std::size_t>(h)][static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
        CHECK(std::abs(bias[0][h][i][j].item<double>() - value) < 1e-9);
        ++n_checked;
      }
    }
  }
  CHECK(n_checked == 20);
}

TEST_CASE("learned: a position past the table is an error that names the table", "[position][learned]") {
  DecoderConfig config = tiny_config("learned");
  config.layers[0].position.options["positions"] = "16";
  auto decoder = make_tiny_decoder(config);
  CHECK(decoder->scheme(0).max_positions() == 16);
  CHECK(decoder->named_parameters().contains("position_embedding"));
  CHECK_NOTHROW(all_logits(*decoder, tiny_ids(2, 16)));
  CHECK(message_of([&] { all_logits(*decoder, tiny_ids(2, 17)); }) ==
        "position scheme learned: position 16 is past the table of 16 rows; the longest sequence is 16 tokens");
}

TEST_CASE("decoder: parameters carry the canonical names", "[model][decoder]") {
  DecoderConfig config = tiny_config("nope");
  config.gated_mlp = true;
  config.tied_head = true;
  const auto parameters = DecoderLm(config, torch::kBFloat16).named_parameters();
  for (const char* name : {"token_embedding", "final_norm.weight", "final_norm.bias", "layers.1.attention_norm.weight",
                           "layers.0.attention.q.weight", "layers.0.attention.o.weight", "layers.1.mlp.gate.weight",
                           "layers.1.mlp.down.bias", "layers.1.mlp_norm.bias"}) {
    INFO(name);
    CHECK(parameters.contains(name));
  }
  CHECK_FALSE(parameters.contains("head.weight"));
  CHECK(parameters["layers.0.attention.q.weight"].scalar_type() == torch::kBFloat16);
  CHECK(parameters["layers.0.mlp.up.bias"].scalar_type() == torch::kFloat32);
  CHECK(parameters["final_norm.weight"].scalar_type() == torch::kFloat32);
}

TEST_CASE("decoder: new position settings change the logits and keep the weights", "[model][decoder]") {
  const DecoderConfig config = tiny_config("rope");
  auto decoder = make_tiny_decoder(config);
  const torch::Tensor before = all_logits(*decoder, tiny_ids(1, 20));
  DecoderConfig other = config;
  for (auto& layer : other.layers) layer.position.rope_base = 5000;
  decoder->set_position(other);
  CHECK(largest_difference(all_logits(*decoder, tiny_ids(1, 20)), before) > 1e-3);
  decoder->set_position(config);
  CHECK(largest_difference(all_logits(*decoder, tiny_ids(1, 20)), before) == 0);
}

TEST_CASE("decoder: every norm, activation and head form runs and differs", "[model][decoder]") {
  using fathom::checkpoint::Activation;
  using fathom::checkpoint::NormKind;
  std::vector<torch::Tensor> results;
  for (const NormKind norm : {NormKind::kRms, NormKind::kLayer}) {
    for (const Activation activation :
         {Activation::kSilu, Activation::kGelu, Activation::kGeluTanh, Activation::kRelu}) {
      for (const bool gated : {false, true}) {
        DecoderConfig config = tiny_config("nope");
        config.norm = norm;
        config.norm_bias = norm == NormKind::kLayer;
        config.activation = activation;
        config.gated_mlp = gated;
        results.push_back(all_logits(*make_tiny_decoder(config), tiny_ids(1, 8)));
      }
    }
  }
  for (std::size_t a = 0; a < results.size(); ++a) {
    CHECK(torch::isfinite(results[a]).all().item<bool>());
    for (std::size_t b = 0; b < a; ++b) CHECK(largest_difference(results[a], results[b]) > 1e-5);
  }
}

TEST_CASE("weights: a saved decoder loads into the same logits, and a wrong tensor is named", "[model][weights]") {
  const std::string folder = (std::filesystem::temp_directory_path() / "fathom_weights_test").string();
  std::filesystem::remove_all(folder);
  for (const fathom::test::SchemeVariant& variant : fathom::test::scheme_variants()) {
    INFO(variant.text());
    const DecoderConfig config = tiny_config(variant);
    auto decoder = make_tiny_decoder(config);
    fathom::model::save_checkpoint(*decoder, fathom::text::WordTokenizer({10, 10, 10, 10, 0, 0, 0}, false).to_json(),
                                   folder);
    const auto checkpoint = fathom::checkpoint::open_checkpoint(folder);
    DecoderLm loaded(checkpoint->config(), torch::kFloat32);
    fathom::model::load_weights(loaded, *checkpoint);
    CHECK(largest_difference(all_logits(loaded, tiny_ids(1, 12)), all_logits(*decoder, tiny_ids(1, 12))) == 0);

    DecoderConfig wider = config;
    wider.layers[1].d_ff = 25;
    DecoderLm wrong(wider, torch::kFloat32);
    CHECK(message_of([&] { fathom::model::load_weights(wrong, *checkpoint); }) ==
          "model: tensor 'layers.1.mlp.down.weight' has shape [16, 24], the configuration needs [16, 25]");
    DecoderConfig deeper = config;
    deeper.layers.push_back(deeper.layers[1]);
    DecoderLm missing(deeper, torch::kFloat32);
    CHECK(message_of([&] { fathom::model::load_weights(missing, *checkpoint); }).find("lacks the tensor 'layers.2.") !=
          std::string::npos);
    DecoderConfig shallower = config;
    shallower.layers.pop_back();
    DecoderLm surplus(shallower, torch::kFloat32);
    CHECK(message_of([&] { fathom::model::load_weights(surplus, *checkpoint); }).find("holds a tensor 'layers.1.") !=
          std::string::npos);
  }
  std::filesystem::remove_all(folder);
}
