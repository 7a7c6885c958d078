// The two readings of a GGUF file's scaling: what the maker's configuration means (strict) and what llama.cpp computes
// (lcpp).

#include <nlohmann/json.hpp>

#include "harness/checkpoint/gguf_positions.h"
#include "harness/checkpoint/inspect.h"
#include "harness/checkpoint/position_override.h"
#include "harness/checkpoint/presets.h"
#include "harness/core/error.h"
#include "tests/checkpoint/config_builders.h"
#include "tests/support/catch.h"

namespace fathom::checkpoint {
namespace {

using test::contains;
using test::frequencies;
using test::worst_ratio;

/// Four layers of two heads of 64, YaRN x32 from 4096 to 131072 tokens.
test::GgufBuilder yarn_file(const std::string& arch, float theta) {
  test::GgufBuilder builder;
  builder.text("general.architecture", arch)
      .uint32(arch + ".block_count", 4)
      .uint32(arch + ".context_length", 131072)
      .uint32(arch + ".embedding_length", 128)
      .uint32(arch + ".attention.head_count", 2)
      .uint32(arch + ".attention.key_length", 64)
      .uint32(arch + ".attention.key_length_mla", 192)
      .uint32(arch + ".rope.dimension_count", 64)
      .float32(arch + ".rope.freq_base", theta)
      .text(arch + ".rope.scaling.type", "yarn")
      .float32(arch + ".rope.scaling.factor", 32)
      .uint32(arch + ".rope.scaling.original_context_length", 4096);
  return builder;
}

/// Heads of 8, LongRoPE from 4096 to 131072 tokens.
test::GgufBuilder longrope_file() {
  test::GgufBuilder builder;
  builder.text("general.architecture", "phi3")
      .uint32("phi3.block_count", 2)
      .uint32("phi3.context_length", 131072)
      .uint32("phi3.embedding_length", 16)
      .uint32("phi3.attention.head_count", 2)
      .text("phi3.rope.scaling.type", "longrope")
      .uint32("phi3.rope.scaling.original_context_length", 4096)
      .floats("rope_factors_short.weight", {4}, {1, 1, 1, 1})
      .floats("rope_factors_long.weight", {4}, {1, 2, 4, 8});
  return builder;
}

DecoderConfig read_file(const test::GgufBuilder& builder) {
  return resolve_gguf_positions(GgufFile::parse(builder.bytes(), "m.gguf"));
}

DecoderConfig lcpp(const DecoderConfig& config) {
  PositionOverride change;
  change.gguf = GgufReading::kLcpp;
  return apply_override(config, change);
}

const LayerSpec& preset_layer(const char* name) {
  const ModelPreset* found = find_model_preset(name);
  REQUIRE(found != nullptr);
  return found->config.layers[1];
}

/// The one line about the readings.
std::string reading_line(const DecoderConfig& config, std::int64_t seq_len) {
  const std::vector<std::string> warnings = position_warnings(config, seq_len);
  REQUIRE(warnings.size() == config.warnings.size() + 1);
  return warnings.back();
}

TEST_CASE("gguf readings: gpt-oss runs its maker's ramp, or llama.cpp's rounded one", "[checkpoint][gguf][readings]") {
  const DecoderConfig strict = read_file(yarn_file("gpt-oss", 150000));
  // The file's theta is float32, which holds 150000 exactly.
  CHECK(worst_ratio(frequencies(strict.layers[0]), frequencies(preset_layer("gpt-oss-20b"))) < 1e-12);
  CHECK(reading_line(strict, 131072) ==
        "m.gguf: strict leaves the YaRN ramp unrounded (truncate = false, which no key can say), lcpp rounds it to "
        "channels; at 131072 tokens frequencies are up to 76.3 % apart; strict is in force, rope.gguf = lcpp chooses "
        "the other");
  const DecoderConfig rounded = lcpp(strict);
  CHECK(rounded.layers[0].position.scaling.options.values().count("truncate") == 0);
  CHECK(worst_ratio(frequencies(rounded.layers[0]), frequencies(strict.layers[0])) > 0.4);
  CHECK(contains(reading_line(rounded, 131072), "lcpp is in force, rope.gguf = strict chooses the other"));
  CHECK(strict.trained_context == 4096);
}

TEST_CASE("gguf readings: Kimi-K2's step, whether a key says so or not", "[checkpoint][gguf][readings]") {
  const DecoderConfig silent = read_file(yarn_file("deepseek2", 50000));
  CHECK(worst_ratio(frequencies(silent.layers[0]), frequencies(preset_layer("Kimi-K2-Instruct"))) < 1e-12);
  CHECK(contains(reading_line(silent, 4096), "beta_fast = 1 as Kimi-K2's configuration has it"));
  const DecoderConfig stated =
      read_file(yarn_file("deepseek2", 50000).float32("deepseek2.rope.scaling.yarn_beta_fast", 1));
  CHECK(frequencies(stated.layers[0]) == frequencies(silent.layers[0]));
  CHECK(contains(reading_line(stated, 4096),
                 "strict takes beta_fast = 1 from deepseek2.rope.scaling.yarn_beta_fast, lcpp 32"));
  for (const DecoderConfig& config : {silent, stated}) {
    const DecoderConfig usual = read_file(yarn_file("deepseek2", 10000));  // DeepSeek's own theta
    DecoderConfig same_theta = lcpp(config);
    same_theta.layers[0].position.rope_base = 10000;
    CHECK(frequencies(same_theta.layers[0]) == frequencies(usual.layers[0]));
  }
}

TEST_CASE("gguf readings: architectures whose betas llama.cpp loads, and usual values, differ in nothing",
          "[checkpoint][gguf][readings]") {
  const DecoderConfig loaded =
      read_file(yarn_file("mistral3", 1e6f).float32("mistral3.rope.scaling.yarn_beta_fast", 4));
  CHECK(loaded.layers[0].position.scaling.options.values().at("beta_fast") == "4");
  const DecoderConfig usual = read_file(yarn_file("qwen2", 1e6f).float32("qwen2.rope.scaling.yarn_beta_fast", 32));
  for (const DecoderConfig& config : {loaded, usual}) {
    CHECK_FALSE(config.layers[0].position.gguf.has_value());
    CHECK(position_warnings(config, 4096).empty());
    CHECK(describe_position(lcpp(config)) == describe_position(config));
  }
}

TEST_CASE("T-43: a short prompt takes LongRoPE's short list, in llama.cpp's reading that of the configured context",
          "[checkpoint][gguf][readings][defects]") {
  const DecoderConfig strict = read_file(longrope_file());
  const auto slowest = [](const DecoderConfig& config, std::int64_t seq_len) {
    return frequencies(config.layers[0], seq_len).back();
  };
  const double theta = rope::default_inv_freq(8, 10000).back();
  CHECK(slowest(strict, 100) == theta);
  CHECK(slowest(strict, 4096) == theta);
  CHECK(slowest(strict, 4097) == theta / 8);
  const DecoderConfig configured = lcpp(strict);
  CHECK(slowest(configured, 100) == theta / 8);
  CHECK_FALSE(depends_on_length(configured.layers[0].position));
  CHECK(contains(describe_position(configured), "switch=configured"));
  const std::string line = reading_line(strict, 100);
  CHECK(contains(line, "strict chooses LongRoPE's list by the current length, lcpp by the configured context"));
  CHECK(contains(line, "at 100 tokens frequencies are up to 700 % apart"));
  CHECK(contains(line, "strict derives the attention factor from the lengths, lcpp takes 1"));
  // A smaller context, as llama.cpp's -c sets it.
  PositionOverride small;
  small.gguf = GgufReading::kLcpp;
  small.scaling_options = OptionSource("[model.scaling]", {{"configured_context", "4096"}});
  CHECK(slowest(apply_override(strict, small), 100) == theta);
}

TEST_CASE("gguf readings: inspect names the reading, and another scaling ends the question",
          "[checkpoint][gguf][readings]") {
  const DecoderConfig strict = read_file(yarn_file("gpt-oss", 150000));
  const auto parameters = [](const DecoderConfig& config) {
    return nlohmann::json::parse(inspect_json(config, 4096)).at("layers").at(0).at("parameters");
  };
  CHECK(parameters(strict).at("gguf_reading") == "strict");
  CHECK(parameters(lcpp(strict)).at("gguf_reading") == "lcpp");
  PositionOverride change;
  change.scaling = "linear";
  change.factor = 4;
  change.gguf = GgufReading::kLcpp;
  const DecoderConfig other = apply_override(strict, change);
  CHECK_FALSE(parameters(other).contains("gguf_reading"));
  CHECK(position_warnings(other, 4096).empty());
  CHECK_THROWS_AS(parse_gguf_reading("llama"), ConfigError);
}

}  // namespace
}  // namespace fathom::checkpoint
