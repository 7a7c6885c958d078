// One test per known defect of other implementations in what layers differ by: scaling by layer type, rotated width,
// layout, layers without rotation (numbers of the defect list). 1e-12 relative for closed forms in double.

#include "harness/checkpoint/gguf_positions.h"
#include "harness/checkpoint/presets.h"
#include "tests/checkpoint/config_builders.h"
#include "tests/support/catch.h"

namespace fathom::checkpoint {
namespace {

using nlohmann::json;
using test::contains;
using test::frequencies;
using test::position_config;
using test::resolve;
using test::resolve_error;
using test::with_block;
using test::worst_ratio;

const DecoderConfig& preset(const char* name) {
  const ModelPreset* found = find_model_preset(name);
  REQUIRE(found != nullptr);
  return found->config;
}

TEST_CASE("T-45: longrope in a block of one layer type answers every long call alike", "[checkpoint][defects]") {
  json config = position_config("gpt_oss", 8);
  config["rope_parameters"] = {{"full_attention",
                                {{"rope_type", "longrope"},
                                 {"rope_theta", 10000},
                                 {"original_max_position_embeddings", 1024},
                                 {"short_factor", {1, 1, 1, 1}},
                                 {"long_factor", {1, 2, 4, 8}}}},
                               {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 10000}}}};
  const LayerSpec layer = resolve(config).layers[1];
  REQUIRE(layer.position.scaling.method == "longrope");
  const std::vector<double> first = frequencies(layer, 2048);
  CHECK(frequencies(layer, 2048) == first);
  CHECK(frequencies(layer, 4096) == first);
  CHECK(frequencies(layer, 1024) == rope::default_inv_freq(8, 10000));
  CHECK(first.back() == rope::default_inv_freq(8, 10000).back() / 8);
}

TEST_CASE("T-46, T-47: Gemma-3 scales the layers that see everything, and only those", "[checkpoint][defects]") {
  const DecoderConfig& large = preset("Gemma-3-4B");
  std::vector<double> eighth = rope::default_inv_freq(256, 1e6);
  for (double& theta : eighth) theta /= 8;
  CHECK(worst_ratio(frequencies(large.layers[5]), eighth) < 1e-12);
  CHECK(frequencies(large.layers[0]) == rope::default_inv_freq(256, 1e4));
  const DecoderConfig& small = preset("Gemma-3-1B");
  CHECK(frequencies(small.layers[5]) == rope::default_inv_freq(256, 1e6));
  CHECK(frequencies(small.layers[0]) == rope::default_inv_freq(256, 1e4));
}

TEST_CASE("T-48: rotary_dim alone is the width, beside a share it must agree", "[checkpoint][defects]") {
  json config = position_config("minimax_m2", 128);
  config["rotary_dim"] = 64;
  CHECK(resolve(config).layers[0].position.rotary_dim == 64);
  config["partial_rotary_factor"] = 0.5;
  CHECK(resolve(config).layers[0].position.rotary_dim == 64);
  config["partial_rotary_factor"] = 1.0;
  CHECK(resolve_error(config) ==
        "rotary_dim = 64 contradicts partial_rotary_factor = 1 of head_dim = 128, which is 128");
}

TEST_CASE("T-49: GLM rotates half of a head where the file does not say", "[checkpoint][defects]") {
  for (const char* model_type : {"glm", "glm4", "glm4_moe"}) {
    CHECK(resolve(position_config(model_type, 128)).layers[0].position.rotary_dim == 64);
  }
}

TEST_CASE("T-51: the rotated width truncates as Python's int does", "[checkpoint][defects]") {
  const auto width = [](std::int64_t d_head, double share) {
    json config = position_config("llama", d_head);
    config["partial_rotary_factor"] = share;
    return resolve(config).layers[0].position.rotary_dim;
  };
  CHECK(width(192, 0.334) == 64);
  CHECK(width(100, 0.29) == 28);
}

TEST_CASE("T-57: no_rope_layers says 1 where RoPE is applied", "[checkpoint][defects]") {
  const auto nope = [](const DecoderConfig& config) {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < config.layers.size(); ++i) {
      if (config.layers[i].position.rotary_dim == 0) out.push_back(i);
    }
    return out;
  };
  const std::vector<std::size_t> every_fourth = {3, 7, 11, 15, 19, 23, 27, 31, 35};
  CHECK(nope(preset("SmolLM3-3B")) == every_fourth);
  json config = position_config("smollm3");
  config["num_hidden_layers"] = 36;
  CHECK(nope(resolve(config)) == every_fourth);
  config["no_rope_layers"] = json::array();
  CHECK(nope(resolve(config)) == every_fourth);
  config["num_hidden_layers"] = 4;
  config["no_rope_layers"] = {1, 1, 0, 1};
  CHECK(nope(resolve(config)) == std::vector<std::size_t>{2});
  CHECK(resolve(config).warnings.empty());
  config["no_rope_layers"] = {0, 0, 0, 1};
  const DecoderConfig disputed = resolve(config);
  REQUIRE(disputed.warnings.size() == 1);
  CHECK(contains(disputed.warnings[0], "leaves 3 of 4 layers without rotation"));
  config["no_rope_layers"] = {1, 0};
  CHECK(resolve_error(config) == "no_rope_layers has 2 entries for 4 layers");
}

TEST_CASE("T-58: NoPE layers have no frequencies, in files that cannot say so as well", "[checkpoint][defects]") {
  test::GgufBuilder builder;
  builder.text("general.architecture", "smollm3")
      .uint32("smollm3.block_count", 8)
      .uint32("smollm3.context_length", 65536)
      .uint32("smollm3.embedding_length", 64)
      .uint32("smollm3.attention.head_count", 4);
  const DecoderConfig gguf = resolve_gguf_positions(GgufFile::parse(builder.bytes(), "m.gguf"));
  for (std::size_t i = 0; i < 8; ++i) {
    INFO(i);
    CHECK(frequencies(gguf.layers[i]).empty() == (i % 4 == 3));
    CHECK((gguf.layers[i].position.kind == "nope") == (i % 4 == 3));
  }
}

TEST_CASE("T-53: mrope_interleaved orders position streams, it is no layout of channel pairs",
          "[checkpoint][defects]") {
  const json block = {{"rope_type", "default"}, {"mrope_interleaved", true}, {"mrope_section", {11, 11, 10}}};
  const DecoderConfig got = resolve(with_block(position_config("qwen3_vl_text"), block));
  CHECK(got.layers[0].position.layout == RopeLayout::kSplitHalf);
  CHECK(got.layers[0].position.scaling.method == "none");
  CHECK(got.warnings.empty());
}

TEST_CASE("T-55: one model is split-half as safetensors and interleaved as GGUF", "[checkpoint][defects]") {
  CHECK(resolve(position_config("llama")).layers[0].position.layout == RopeLayout::kSplitHalf);
  test::GgufBuilder builder;
  builder.text("general.architecture", "llama")
      .uint32("llama.block_count", 1)
      .uint32("llama.context_length", 4096)
      .uint32("llama.embedding_length", 64)
      .uint32("llama.attention.head_count", 4);
  const DecoderConfig gguf = resolve_gguf_positions(GgufFile::parse(builder.bytes(), "m.gguf"));
  CHECK(gguf.layers[0].position.layout == RopeLayout::kInterleaved);
}

}  // namespace
}  // namespace fathom::checkpoint
