#include "harness/checkpoint/decoder_config.h"

#include <cmath>

#include "harness/checkpoint/position_override.h"
#include "harness/core/error.h"
#include "tests/support/catch.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig rope_model() {
  DecoderConfig config;
  config.name = "m";
  config.claimed_context = 4096;
  LayerSpec layer;
  layer.n_heads = layer.n_kv_heads = 2;
  layer.d_head = 64;
  layer.position.rotary_dim = 64;
  layer.position.rope_base = 10000;
  layer.position.scaling.original_context = 4096;
  config.layers.assign(3, layer);
  config.layers[1].position = PositionSpec{};
  config.layers[1].position.kind = "nope";
  return config;
}

template <typename Action>
std::string config_error(Action action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no ConfigError";
}

PositionOverride scaled(const std::string& method, double factor) {
  PositionOverride change;
  change.scaling = method;
  change.factor = factor;
  return change;
}

TEST_CASE("resolve_frequencies: a layer that does not rotate has no list", "[checkpoint][config]") {
  const rope::RopeFrequencies got = resolve_frequencies(rope_model().layers[1].position, 100);
  CHECK(got.inv_freq.empty());
  CHECK(got.attention_factor == 1.0);
}

TEST_CASE("override: nothing given leaves the model as it is", "[checkpoint][config]") {
  const DecoderConfig config = rope_model();
  CHECK(describe_position(apply_override(config, {})) == describe_position(config));
  CHECK(describe_position(apply_override(config, scaled("declared", 8))) == describe_position(config));
}

TEST_CASE("override: a method reaches every rotating layer and no other", "[checkpoint][config]") {
  const DecoderConfig got = apply_override(rope_model(), scaled("linear", 4));
  for (const std::size_t i : {0u, 2u}) {
    CHECK(got.layers[i].position.scaling.method == "linear");
    CHECK(resolve_frequencies(got.layers[i].position, 1).inv_freq[0] == 0.25);
  }
  CHECK(got.layers[1].position.scaling.method == "none");
  CHECK(got.layers[1].position.kind == "nope");
}

TEST_CASE("override: base multiplies theta and drops the declared method", "[checkpoint][config]") {
  const DecoderConfig declared = apply_override(rope_model(), scaled("yarn", 4));
  const DecoderConfig got = apply_override(declared, scaled("base", 8));
  CHECK(got.layers[0].position.rope_base == 80000.0);
  CHECK(got.layers[0].position.scaling.method == "none");
  PositionOverride change = scaled("base", 8);
  change.rope_base = 500;
  CHECK(apply_override(declared, change).layers[0].position.rope_base == 4000.0);
}

TEST_CASE("override: none drops the declared method and its factor", "[checkpoint][config]") {
  const DecoderConfig declared = apply_override(rope_model(), scaled("yarn", 4));
  const DecoderConfig got = apply_override(declared, scaled("none", 4));
  CHECK(resolve_frequencies(got.layers[0].position, 1).inv_freq == rope::default_inv_freq(64, 10000));
  CHECK(got.layers[0].position.scaling.factor == 1.0);
}

TEST_CASE("override: the original context is the override's, the declared, the trained, the claimed",
          "[checkpoint][config]") {
  DecoderConfig config = rope_model();
  const auto original = [](const DecoderConfig& c) { return c.layers[0].position.scaling.original_context; };
  CHECK(original(apply_override(config, scaled("yarn", 4))) == 4096);
  config.trained_context = 2048;
  CHECK(original(apply_override(config, scaled("yarn", 4))) == 2048);
  DecoderConfig declared = apply_override(config, scaled("yarn", 4));
  for (LayerSpec& layer : declared.layers) layer.position.scaling.original_context = 1024;
  CHECK(original(apply_override(declared, scaled("dynamic", 4))) == 1024);
  PositionOverride change = scaled("yarn", 4);
  change.original_context = 512;
  CHECK(original(apply_override(declared, change)) == 512);
}

TEST_CASE("override: knobs given at test time stand beside the declared ones", "[checkpoint][config]") {
  PositionOverride yarn = scaled("yarn", 4);
  yarn.scaling_options = OptionSource("[file]", {{"beta_fast", "16"}, {"truncate", "off"}});
  const DecoderConfig declared = apply_override(rope_model(), yarn);
  PositionOverride knob = scaled("declared", 1);
  knob.scaling_options = OptionSource("[model.scaling]", {{"truncate", "on"}});
  const auto options = apply_override(declared, knob).layers[0].position.scaling.options.values();
  CHECK(options.at("beta_fast") == "16");
  CHECK(options.at("truncate") == "on");
}

TEST_CASE("override: what cannot be is refused at once", "[checkpoint][config][errors]") {
  DecoderConfig nope = rope_model();
  for (LayerSpec& layer : nope.layers) layer.position = nope.layers[1].position;
  CHECK(config_error([&] { apply_override(nope, scaled("yarn", 4)); }) ==
        "scaling = yarn: model 'm' has no rotating layer; only none applies");
  CHECK(config_error([&] { apply_override(nope, scaled("base", 4)); }) ==
        "scaling = base: model 'm' has no rotating layer; only none applies");
  CHECK_NOTHROW(apply_override(nope, scaled("none", 4)));
  CHECK(config_error([&] { apply_override(rope_model(), scaled("yarnn", 4)); }).find("did you mean 'yarn'?") !=
        std::string::npos);
  CHECK(config_error([&] { apply_override(rope_model(), scaled("yarn", 0.5)); }) ==
        "scaling.factor = 0.5 must be at least 1");
  PositionOverride knob = scaled("linear", 2);
  knob.scaling_options = OptionSource("[model.scaling]", {{"beta_fast", "1"}});
  CHECK(config_error([&] { apply_override(rope_model(), knob); }).find("unknown key 'beta_fast'") != std::string::npos);
  PositionOverride frozen = scaled("dynamic", 2);
  frozen.length_policy = rope::LengthPolicy::kFrozen;
  CHECK(config_error([&] { apply_override(rope_model(), frozen); }) ==
        "scaling dynamic: mode frozen needs a length above 0, not 0");
  PositionOverride fixed = scaled("dynamic", 2);
  fixed.length_policy = rope::LengthPolicy::kFixed;
  CHECK(config_error([&] { apply_override(rope_model(), fixed); }).find("not fixed") != std::string::npos);
}

TEST_CASE("length policy: consistent follows the length, frozen does not", "[checkpoint][config]") {
  const PositionSpec consistent = apply_override(rope_model(), scaled("dynamic", 2)).layers[0].position;
  CHECK(depends_on_length(consistent));
  CHECK(resolve_frequencies(consistent, 4096).inv_freq != resolve_frequencies(consistent, 8192).inv_freq);

  PositionOverride change = scaled("dynamic", 2);
  change.length_policy = rope::LengthPolicy::kFrozen;
  change.frozen_length = 8192;
  const PositionSpec frozen = apply_override(rope_model(), change).layers[0].position;
  CHECK_FALSE(depends_on_length(frozen));
  CHECK(resolve_frequencies(frozen, 1).inv_freq == resolve_frequencies(consistent, 8192).inv_freq);
  CHECK(resolve_frequencies(frozen, 100000).inv_freq == resolve_frequencies(consistent, 8192).inv_freq);

  change.length_policy = rope::LengthPolicy::kHf;
  CHECK(depends_on_length(apply_override(rope_model(), change).layers[0].position));
  CHECK_FALSE(depends_on_length(apply_override(rope_model(), scaled("yarn", 2)).layers[0].position));
  CHECK_FALSE(depends_on_length(rope_model().layers[1].position));
}

TEST_CASE("describe_position: equal neighbours share a line, every setting shows", "[checkpoint][config]") {
  DecoderConfig config = rope_model();
  CHECK(describe_position(config) ==
        "layer 0: rope layout=split_half side=prefix rotary_dim=64 base=10000 scaling=none\n"
        "layer 1: nope\n"
        "layer 2: rope layout=split_half side=prefix rotary_dim=64 base=10000 scaling=none");
  config.layers[1] = config.layers[0];
  config.layers[1].window = 16;
  config = apply_override(config, scaled("dynamic", 2));
  CHECK(describe_position(config) ==
        "layer 0: rope layout=split_half side=prefix rotary_dim=64 base=10000 "
        "scaling=dynamic(factor=2;original_context=4096;mode=consistent;alpha=continuous)\n"
        "layer 1: rope layout=split_half side=prefix rotary_dim=64 base=10000 "
        "scaling=dynamic(factor=2;original_context=4096;mode=consistent;alpha=continuous) window=16\n"
        "layer 2: rope layout=split_half side=prefix rotary_dim=64 base=10000 "
        "scaling=dynamic(factor=2;original_context=4096;mode=consistent;alpha=continuous)");
  config.layers[1].window.reset();
  CHECK(describe_position(config).rfind("layers 0-2: rope ", 0) == 0);
}

TEST_CASE("describe_position: remap, temperature, chunk and missing softmax are part of an identity",
          "[checkpoint][config]") {
  DecoderConfig config = rope_model();
  const std::string plain = describe_position(config);
  config.layers[0].position.remap.method = "rerope";
  CHECK(describe_position(config).find("remap=rerope(window=2048)") != std::string::npos);
  config = rope_model();
  config.layers[1].position.temperature = {rope::TemperatureKind::kLlama4, 0.1, 8192};
  CHECK(describe_position(config).find("nope temperature=llama4(scale=0.1;length=8192)") != std::string::npos);
  config = rope_model();
  config.layers[2].chunk = 64;
  CHECK(describe_position(config).find(" chunk=64") != std::string::npos);
  config = rope_model();
  config.layers[1].softmax_attention = false;
  CHECK(describe_position(config).find("nope no_softmax_attention") != std::string::npos);
  CHECK(describe_position(rope_model()) == plain);
}

}  // namespace
}  // namespace fathom::checkpoint
