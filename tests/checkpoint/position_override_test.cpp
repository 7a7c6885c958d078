// Which layers a change of the rotation reaches in models with two rotations, from the resolver to the override.

#include "harness/checkpoint/position_override.h"

#include "harness/checkpoint/checkpoint.h"
#include "harness/checkpoint/gguf_positions.h"
#include "harness/checkpoint/presets.h"
#include "harness/core/error.h"
#include "tests/checkpoint/config_builders.h"
#include "tests/support/catch.h"
#include "tests/support/shared_dir.h"

namespace fathom::checkpoint {
namespace {

using nlohmann::json;
using test::frequencies;
using test::position_config;
using test::resolve;

template <typename Action>
std::string override_error(Action action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no ConfigError";
}

/// Layers with a rotation of their own.
std::vector<std::size_t> local_layers(const DecoderConfig& config) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    if (config.layers[i].position.own_rotation) out.push_back(i);
  }
  return out;
}

const DecoderConfig& preset_config(const char* name) {
  const ModelPreset* found = find_model_preset(name);
  REQUIRE(found != nullptr);
  return found->config;
}

/// Six layers, the last of which sees everything; theta 1e6 there and 1e4 elsewhere.
json gemma3() {
  json config = position_config("gemma3_text", 16);
  config["num_hidden_layers"] = 6;
  config["sliding_window"] = 512;
  return config;
}

DecoderConfig gemma3_with(const PositionOverride& change) {
  return apply_override(resolve(gemma3()), change);
}

PositionOverride linear(RotationLayers layers) {
  PositionOverride change;
  change.scaling = "linear";
  change.factor = 4;
  change.layers = layers;
  return change;
}

std::vector<double> divided(double base, double factor) {
  std::vector<double> out = rope::default_inv_freq(16, base);
  for (double& theta : out) theta /= factor;
  return out;
}

test::GgufBuilder windowed_gguf(const std::string& arch) {
  test::GgufBuilder builder;
  builder.text("general.architecture", arch)
      .uint32(arch + ".block_count", 8)
      .uint32(arch + ".context_length", 8192)
      .uint32(arch + ".embedding_length", 64)
      .uint32(arch + ".attention.head_count", 4)
      .uint32(arch + ".attention.sliding_window", 512)
      .text(arch + ".rope.scaling.type", "yarn")
      .float32(arch + ".rope.scaling.factor", 4)
      .uint32(arch + ".rope.scaling.original_context_length", 2048);
  return builder;
}

TEST_CASE("resolver: sliding layers with a theta of their own are told apart", "[checkpoint][override]") {
  using Layers = std::vector<std::size_t>;
  CHECK(local_layers(resolve(gemma3())) == Layers{0, 1, 2, 3, 4});
  json nested = gemma3();
  nested["rope_parameters"] = {{"full_attention", {{"rope_type", "default"}, {"rope_theta", 1e6}}},
                               {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 1e4}}}};
  CHECK(local_layers(resolve(nested)) == Layers{0, 1, 2, 3, 4});
  CHECK(local_layers(preset_config("Gemma-3-4B")).size() == 29);
  CHECK(local_layers(preset_config("MiMo-V2-Flash")).size() > 30);
  CHECK(local_layers(preset_config("DeepSeek-V4-Flash")).front() == 0);
  for (const char* name : {"Gemma-2-9B", "gpt-oss-20b", "Llama-4-Scout-17B-16E", "SmolLM3-3B", "Mistral-7B-v0.1"}) {
    INFO(name);
    CHECK(local_layers(preset_config(name)).empty());
  }
  // Two blocks that say the same are one rotation.
  json same = position_config("gpt_oss");
  const json block = {{"rope_type", "default"}, {"rope_theta", 150000}};
  same["rope_parameters"] = {{"full_attention", block}, {"sliding_attention", block}};
  CHECK(local_layers(resolve(same)).empty());
  same["rope_parameters"]["sliding_attention"]["rope_theta"] = 10000;
  CHECK(local_layers(resolve(same)) == Layers{0, 2});
}

TEST_CASE("resolver: GGUF windows that no scaling touches are told apart", "[checkpoint][override]") {
  const auto read = [](const std::string& arch) {
    return resolve_gguf_positions(GgufFile::parse(windowed_gguf(arch).bytes(), "m.gguf"));
  };
  CHECK(local_layers(read("gemma3")).size() == 7);  // all but layer 5
  // OLMo-3 files say olmo2; llama.cpp and transformers leave its windows unscaled.
  const DecoderConfig olmo = read("olmo2");
  CHECK(local_layers(olmo) == std::vector<std::size_t>{0, 1, 2, 4, 5, 6});
  CHECK(frequencies(olmo.layers[0]) == rope::default_inv_freq(16, 10000));
  CHECK(olmo.layers[3].position.scaling.method == "yarn");
  CHECK(local_layers(read("gpt-oss")).empty());
}

TEST_CASE("override: scaling reaches the global layers of Gemma-3 and leaves the local ones",
          "[checkpoint][override]") {
  const DecoderConfig got = gemma3_with(linear(RotationLayers::kGlobal));
  CHECK(frequencies(got.layers[5]) == divided(1e6, 4));
  for (const std::size_t i : {0u, 4u}) CHECK(frequencies(got.layers[i]) == divided(1e4, 1));
}

TEST_CASE("override: local and all reach the layers they name", "[checkpoint][override]") {
  const DecoderConfig local = gemma3_with(linear(RotationLayers::kLocal));
  CHECK(frequencies(local.layers[5]) == divided(1e6, 1));
  CHECK(frequencies(local.layers[0]) == divided(1e4, 4));
  const DecoderConfig all = gemma3_with(linear(RotationLayers::kAll));
  CHECK(frequencies(all.layers[5]) == divided(1e6, 4));
  CHECK(frequencies(all.layers[0]) == divided(1e4, 4));
}

TEST_CASE("override: theta, remap and knobs follow the same choice of layers", "[checkpoint][override]") {
  PositionOverride change;
  change.rope_base = 5e5;
  change.remap = RemapSpec{"rerope", {}};
  DecoderConfig got = gemma3_with(change);
  CHECK(got.layers[5].position.rope_base == 5e5);
  CHECK(got.layers[5].position.remap.method == "rerope");
  CHECK(got.layers[0].position.rope_base == 1e4);
  CHECK(got.layers[0].position.remap.method == "none");
  change.layers = RotationLayers::kLocal;
  got = gemma3_with(change);
  CHECK(got.layers[5].position.rope_base == 1e6);
  CHECK(got.layers[0].position.rope_base == 5e5);
  // A knob of the declared method would be unknown to layers without that method.
  PositionOverride knob;
  knob.scaling_options = OptionSource("[model.scaling]", {{"truncate", "off"}});
  got = apply_override(preset_config("DeepSeek-V4-Flash"), knob);
  CHECK(got.layers[2].position.scaling.options.values().at("truncate") == "off");
  CHECK(got.layers[0].position.scaling.method == "none");
}

TEST_CASE("override: table format and temperature reach every layer", "[checkpoint][override]") {
  PositionOverride change;
  change.table_dtype = rope::FloatFormat::kBfloat16;
  change.temperature = rope::QueryTemperature{rope::TemperatureKind::kUniform, 1.5, 0};
  const DecoderConfig got = gemma3_with(change);
  for (const LayerSpec& layer : got.layers) {
    CHECK(layer.position.table_dtype == rope::FloatFormat::kBfloat16);
    CHECK(layer.position.temperature.scale == 1.5);
  }
  CHECK(describe_position(got).find(" table_dtype=bf16") != std::string::npos);
  CHECK(resolve_frequencies(got.layers[0].position, 1).table_dtype == rope::FloatFormat::kBfloat16);
}

TEST_CASE("override: a choice of layers that means nothing is refused", "[checkpoint][override][errors]") {
  const DecoderConfig plain = resolve(position_config("llama"));
  CHECK(override_error([&] { apply_override(plain, linear(RotationLayers::kLocal)); }) ==
        "rope.layers = local: model '' has one rotation for all its layers; leave the key out");
  CHECK(override_error([&] { apply_override(plain, linear(RotationLayers::kAll)); }) ==
        "rope.layers = all: model '' has one rotation for all its layers; leave the key out");
  json short_model = gemma3();
  short_model["num_hidden_layers"] = 4;  // all of them slide
  const DecoderConfig sliding = resolve(short_model);
  CHECK(override_error([&] { apply_override(sliding, linear(RotationLayers::kGlobal)); }) ==
        "scaling = linear: the layers of model '' that rotate are all local, with a theta of their own; to change "
        "those, say rope.layers = local");
  CHECK(frequencies(apply_override(sliding, linear(RotationLayers::kLocal)).layers[0]) == divided(1e4, 4));
  CHECK_NOTHROW(apply_override(sliding, {}));
  CHECK(override_error([] { parse_rotation_layers("sliding"); }) ==
        "rope.layers = sliding must be global, local or all");
}

TEST_CASE("override: Gemma-3's fixture, in both versions of its configuration", "[checkpoint][override]") {
  FATHOM_NEEDS_SHARED("fixtures/tiny/gemma3_text/config.json");
  for (const char* file : {"config.json", "config_v4.json"}) {
    INFO(file);
    const DecoderConfig config = read_config(test::shared_path(std::string("fixtures/tiny/gemma3_text/") + file));
    REQUIRE(config.n_layers() == 3);
    CHECK(local_layers(config) == std::vector<std::size_t>{0, 1});
    CHECK(telling_layer(config).position.rope_base == 1e6);
    const DecoderConfig got = apply_override(config, linear(RotationLayers::kGlobal));
    CHECK(frequencies(got.layers[2]) == divided(1e6, 4));
    CHECK(frequencies(got.layers[0]) == divided(1e4, 1));
  }
}

}  // namespace
}  // namespace fathom::checkpoint
