// The views by which fused, transposed and stacked tensors are read, on numbers that can be counted off.

#include "harness/checkpoint/name_map.h"

#include <map>
#include <numeric>

#include "harness/checkpoint/decoder_tensors.h"
#include "tests/support/catch.h"

namespace fathom::checkpoint {
namespace {

/// One layer: four query heads on two key-value heads of width 2, d_model 3, d_ff 2.
DecoderConfig small_decoder() {
  DecoderConfig config;
  config.vocab_size = 5;
  config.d_model = 3;
  LayerSpec layer;
  layer.n_heads = 4;
  layer.n_kv_heads = 2;
  layer.d_head = 2;
  layer.d_ff = 2;
  config.layers = {layer};
  return config;
}

std::map<std::string, TensorRule> rules_of(const DecoderConfig& config, const NameMap& names) {
  std::map<std::string, TensorRule> out;
  for (TensorRule& rule : map_tensors(config, names)) out[rule.canonical] = rule;
  return out;
}

/// Rows of a rule whose stored tensor counts 0, 1, 2, …
std::vector<float> read_counted(const TensorRule& rule, std::int64_t begin, std::int64_t end) {
  std::int64_t width = 1;
  for (std::size_t i = 1; i < rule.shape.size(); ++i) width *= rule.shape[i];
  std::vector<float> out(static_cast<std::size_t>((end - begin) * width));
  read_view(
      rule, begin, end,
      [](std::int64_t from, std::int64_t to, float* values) {
        for (std::int64_t i = from; i < to; ++i) *values++ = static_cast<float>(i);
      },
      out.data());
  return out;
}

NameMap packed(Packing packing, bool transposed) {
  NameMap names = llama_style_names();
  names.layers = with_names(names.layers, {{"attention.q", "qkv", packing, transposed},
                                           {"attention.k", "qkv", packing, transposed},
                                           {"attention.v", "qkv", packing, transposed}});
  return names;
}

TEST_CASE("name map: plain names, head and norms", "[checkpoint][names]") {
  const auto rules = rules_of(small_decoder(), llama_style_names());
  CHECK(rules.at("layers.0.attention.k.weight").stored == "model.layers.0.self_attn.k_proj.weight");
  CHECK(rules.at("layers.0.attention.k.weight").stored_shape == std::vector<std::int64_t>{4, 3});
  CHECK(rules.at("token_embedding").stored == "model.embed_tokens.weight");
  CHECK(rules.at("head.weight").stored == "lm_head.weight");
  CHECK(rules.at("final_norm.weight").added == 0);
  CHECK(rules.size() == decoder_tensors(small_decoder()).size());
  NameMap gemma = llama_style_names();
  gemma.norms_less_one = true;
  CHECK(rules_of(small_decoder(), gemma).at("final_norm.weight").added == 1);
  CHECK(rules_of(small_decoder(), gemma).at("head.weight").added == 0);
  CHECK(read_counted(rules_of(small_decoder(), gemma).at("final_norm.weight"), 1, 3) == std::vector<float>{2, 3});
}

TEST_CASE("name map: q, k and v as rows of one matrix", "[checkpoint][names]") {
  // 8 rows of q, 4 of k, 4 of v, 3 wide: k begins with number 8 * 3, v with 12 * 3.
  const auto rules = rules_of(small_decoder(), packed(Packing::kQkv, false));
  CHECK(rules.at("layers.0.attention.v.weight").stored_shape == std::vector<std::int64_t>{16, 3});
  CHECK(read_counted(rules.at("layers.0.attention.q.weight"), 0, 1) == std::vector<float>{0, 1, 2});
  CHECK(read_counted(rules.at("layers.0.attention.k.weight"), 0, 1) == std::vector<float>{24, 25, 26});
  CHECK(read_counted(rules.at("layers.0.attention.v.weight"), 3, 4) == std::vector<float>{45, 46, 47});
}

TEST_CASE("name map: q, k and v of every key-value head together", "[checkpoint][names]") {
  // A group: two query heads (rows 0-3), a key (4-5), a value (6-7); the second group begins with row 8.
  const auto rules = rules_of(small_decoder(), packed(Packing::kQkvByHead, false));
  CHECK(read_counted(rules.at("layers.0.attention.q.weight"), 3, 5) == std::vector<float>{9, 10, 11, 24, 25, 26});
  CHECK(read_counted(rules.at("layers.0.attention.k.weight"), 1, 3) == std::vector<float>{15, 16, 17, 36, 37, 38});
  CHECK(read_counted(rules.at("layers.0.attention.v.weight"), 2, 3) == std::vector<float>{42, 43, 44});
  DecoderConfig biased = small_decoder();
  biased.attention_bias = true;
  const auto bias = rules_of(biased, packed(Packing::kQkvByHead, false)).at("layers.0.attention.v.bias");
  CHECK(bias.stored_shape == std::vector<std::int64_t>{16});
  CHECK(read_counted(bias, 0, 4) == std::vector<float>{6, 7, 14, 15});
}

TEST_CASE("name map: matrices stored with inputs as rows", "[checkpoint][names]") {
  // Three rows of 16: ours is column 8 + r of the stored matrix for k.
  const auto rules = rules_of(small_decoder(), packed(Packing::kQkv, true));
  CHECK(rules.at("layers.0.attention.k.weight").stored_shape == std::vector<std::int64_t>{3, 16});
  CHECK(read_counted(rules.at("layers.0.attention.k.weight"), 1, 3) == std::vector<float>{9, 25, 41, 10, 26, 42});
}

TEST_CASE("name map: experts of one tensor, gate and up in turn", "[checkpoint][names]") {
  DecoderConfig config = small_decoder();
  config.layers[0].moe = MoeSpec{};
  config.layers[0].moe->n_experts = 2;
  config.layers[0].moe->n_chosen = 1;
  config.layers[0].moe->d_ff = 2;
  config.layers[0].moe->expert_bias = true;
  NameMap names = llama_style_names();
  constexpr Packing kPair = Packing::kGateUpAlternating;
  names.layers = with_names(names.layers, {{"mlp.router", "router"},
                                           {"mlp.experts.#.gate.weight", "gate_up", kPair, true},
                                           {"mlp.experts.#.gate.bias", "gate_up_bias", kPair},
                                           {"mlp.experts.#.up.weight", "gate_up", kPair, true},
                                           {"mlp.experts.#.up.bias", "gate_up_bias", kPair},
                                           {"mlp.experts.#.down", "expert.#.down"}});
  const auto rules = rules_of(config, names);
  // Two experts of [3, 4]: the second begins with number 12; its columns are gate 0, up 0, gate 1, up 1.
  const TensorRule& up = rules.at("layers.0.mlp.experts.1.up.weight");
  CHECK(up.stored_shape == std::vector<std::int64_t>{2, 3, 4});
  CHECK(read_counted(up, 0, 2) == std::vector<float>{13, 17, 21, 15, 19, 23});
  CHECK(read_counted(rules.at("layers.0.mlp.experts.1.gate.bias"), 0, 2) == std::vector<float>{4, 6});
  CHECK(rules.at("layers.0.mlp.experts.1.down.weight").stored == "model.layers.0.expert.1.down.weight");
}

}  // namespace
}  // namespace fathom::checkpoint
