// One test per known defect of other implementations that a resolver can have (numbers of the defect list). What is
// compared are figures of the reference tables (tests/golden), 1e-12 relative for closed forms in double.

#include <cmath>

#include "harness/checkpoint/gguf_positions.h"
#include "harness/checkpoint/presets.h"
#include "tests/checkpoint/config_builders.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

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

/// The first case of a golden file whose model begins like this.
json golden_case(const char* file, const std::string& model) {
  const json golden = test::read_golden(file);
  for (const json& entry : golden.at("cases")) {
    if (entry.contains("model") && entry["model"].get<std::string>().rfind(model, 0) == 0) return entry;
  }
  FAIL("no case " << model << " in " << file);
  return {};
}

std::vector<double> golden_list(const json& entry) {
  return entry.at("inv_freq_f64").get<std::vector<double>>();
}

const DecoderConfig& preset(const char* name) {
  const ModelPreset* found = find_model_preset(name);
  REQUIRE(found != nullptr);
  return found->config;
}

double amplitude(const LayerSpec& layer) {
  return resolve_frequencies(layer.position, 1).attention_factor;
}

/// The scale of the logits of a rotated pair: amplitude squared times the softmax scale in force.
double logit_scale(const LayerSpec& layer) {
  const rope::RopeFrequencies got = resolve_frequencies(layer.position, 1);
  const double plain = layer.softmax_scale.value_or(1 / std::sqrt(static_cast<double>(layer.d_head)));
  return plain * got.softmax_scale_factor * got.attention_factor * got.attention_factor;
}

json yarn_block(double factor, std::int64_t original) {
  return {{"rope_type", "yarn"}, {"factor", factor}, {"original_max_position_embeddings", original}};
}

TEST_CASE("T-20: llama3 scaling is applied, and an unknown type is not skipped", "[checkpoint][defects]") {
  const json golden = golden_case("rope_llama3.json", "Llama-3.1");
  CHECK(worst_ratio(frequencies(preset("Llama-3.1-8B").layers[0]), golden_list(golden)) < 1e-12);
  CHECK(contains(resolve_error(with_block(position_config("llama"), {{"rope_type", "llama9"}, {"factor", 8}})),
                 "rope_type = 'llama9' is not supported"));
}

TEST_CASE("T-21: a GGUF of the Llama-3.1 kind without divisors is warned about", "[checkpoint][defects]") {
  test::GgufBuilder builder;
  builder.text("general.architecture", "llama")
      .uint32("llama.block_count", 1)
      .uint32("llama.context_length", 131072)
      .uint32("llama.embedding_length", 4)
      .uint32("llama.attention.head_count", 2)
      .float32("llama.rope.freq_base", 500000);
  const DecoderConfig missing = resolve_gguf_positions(GgufFile::parse(builder.bytes(), "m.gguf"));
  REQUIRE(missing.warnings.size() == 1);
  CHECK(contains(missing.warnings[0], "no tensor rope_freqs.weight"));
  builder.floats("rope_freqs.weight", {1}, {8});
  const DecoderConfig there = resolve_gguf_positions(GgufFile::parse(builder.bytes(), "m.gguf"));
  CHECK(there.warnings.empty());
  CHECK(frequencies(there.layers[0]) == std::vector<double>{1.0 / 8});
}

TEST_CASE("T-22: an explicit YaRN factor is not replaced by the ratio of lengths", "[checkpoint][defects]") {
  json config = with_block(position_config("qwen3", 128), yarn_block(4, 32768));
  config["max_position_embeddings"] = 40960;
  config["rope_theta"] = 1e6;
  const DecoderConfig got = resolve(config);
  CHECK(got.layers[0].position.scaling.factor == 4.0);
  CHECK(worst_ratio(frequencies(got.layers[0]), golden_list(golden_case("rope_yarn.json", "Qwen2.5"))) < 1e-12);
  REQUIRE(got.warnings.size() == 1);
  CHECK(contains(got.warnings[0], "factor = 4 is used"));
}

TEST_CASE("T-23: the ramp starts from the original length, not the extended one", "[checkpoint][defects]") {
  const std::vector<double> got = frequencies(preset("DeepSeek-V3").layers[0]);
  const std::vector<double> plain = rope::default_inv_freq(64, 10000);
  CHECK(got[10] == plain[10]);  // low = 10, the last channel that stays
  CHECK(got[11] < plain[11]);
  CHECK(std::abs(got[23] / (plain[23] / 40) - 1) < 1e-12);  // high = 23, the first that is divided
  CHECK(got[22] > plain[22] / 40);
}

TEST_CASE("T-24: mscale counts with mscale_all_dim only, each in its place", "[checkpoint][defects]") {
  const auto of = [](const json& extra) {
    json block = yarn_block(40, 4096);
    block.update(extra);
    return amplitude(resolve(with_block(position_config("llama"), block)).layers[0]);
  };
  const auto m = [](double k) { return 0.1 * k * std::log(40.0) + 1; };
  CHECK(std::abs(of({{"mscale", 0.707}, {"mscale_all_dim", 0.707}}) - 1) < 1e-12);
  CHECK(std::abs(of({{"mscale", 1}, {"mscale_all_dim", 0.5}}) - m(1) / m(0.5)) < 1e-12);
  CHECK(std::abs(of({{"mscale", 0.707}}) - m(1)) < 1e-12);
  CHECK(std::abs(of({{"mscale", 1}, {"mscale_all_dim", 0}}) - m(1)) < 1e-12);
}

TEST_CASE("T-25: latent attention multiplies its softmax scale by m^2", "[checkpoint][defects]") {
  const std::map<std::string, const char*> names = {
      {"DeepSeek-V3", "DeepSeek-V3"}, {"DeepSeek-V2-Lite", "DeepSeek-V2-Lite"}, {"Kimi-K2", "Kimi-K2-Instruct"}};
  int checked = 0;
  const json golden = test::read_golden("rope_yarn.json");
  for (const json& entry : golden.at("deepseek_softmax_scale")) {
    const LayerSpec& layer = preset(names.at(entry["model"])).layers[0];
    CHECK(amplitude(layer) == 1.0);
    CHECK(std::abs(logit_scale(layer) / entry["scale"].get<double>() - 1) < 1e-12);
    ++checked;
  }
  CHECK(checked == 3);
}

TEST_CASE("T-26: m^2 is a matter of the class: the same block on a plain head leaves the scale",
          "[checkpoint][defects]") {
  json block = yarn_block(40, 4096);
  block.update({{"mscale", 1.0}, {"mscale_all_dim", 1.0}});
  CHECK(std::abs(logit_scale(resolve(with_block(position_config("llama"), block)).layers[0]) - 1.0 / 8) < 1e-12);
  json latent = with_block(position_config("deepseek_v3"), block);
  latent.update({{"qk_nope_head_dim", 128}, {"qk_rope_head_dim", 64}, {"max_position_embeddings", 163840}});
  CHECK(std::abs(logit_scale(resolve(latent).layers[0]) - 0.1352337788608801) < 1e-12);
}

TEST_CASE("T-27: the product of a GGUF's factors is that of its configuration", "[checkpoint][defects]") {
  const auto read = [](const std::string& arch, float log_multiplier, float extra) {
    test::GgufBuilder builder;
    builder.text("general.architecture", arch)
        .uint32(arch + ".block_count", 1)
        .uint32(arch + ".context_length", 163840)
        .uint32(arch + ".embedding_length", 384)
        .uint32(arch + ".attention.head_count", 2)
        .uint32(arch + ".attention.key_length", 576)
        .uint32(arch + ".attention.key_length_mla", 192)
        .uint32(arch + ".rope.dimension_count", 64)
        .text(arch + ".rope.scaling.type", "yarn")
        .float32(arch + ".rope.scaling.factor", 40)
        .uint32(arch + ".rope.scaling.original_context_length", 4096)
        .float32(arch + ".rope.scaling.attn_factor", extra)
        .float32(arch + ".rope.scaling.yarn_log_multiplier", log_multiplier);
    return resolve_gguf_positions(GgufFile::parse(builder.bytes(), "m.gguf")).layers[0];
  };
  // float32 metadata: 1e-6.
  CHECK(std::abs(logit_scale(read("deepseek2", 0.1f, 1)) / 0.1352337788608801 - 1) < 1e-6);
  // DeepSeek-V2-Lite: mscale = mscale_all_dim = 0.707, of which the file holds a tenth of the second.
  CHECK(std::abs(logit_scale(read("deepseek2", 0.0707f, 1)) / 0.11472138679292609 - 1) < 1e-6);
  CHECK(amplitude(read("deepseek2", 0.0707f, 1)) == 1.0);
  const double m = 0.1 * std::log(40.0) + 1;
  CHECK(std::abs(amplitude(read("qwen2", 0, 1)) - m) < 1e-12);
  CHECK(std::abs(amplitude(read("qwen2", 0, 0.5f)) - 0.5 * m) < 1e-12);
}

TEST_CASE("T-28, T-38: an explicit attention_factor is the amplitude, mscale never is", "[checkpoint][defects]") {
  json block = yarn_block(32, 4096);
  block["attention_factor"] = 1.25;
  CHECK(amplitude(resolve(with_block(position_config("llama"), block)).layers[0]) == 1.25);
  json coefficient = yarn_block(32, 4096);
  coefficient["mscale"] = 1.25;
  CHECK(std::abs(amplitude(resolve(with_block(position_config("llama"), coefficient)).layers[0]) -
                 (0.1 * std::log(32.0) + 1)) < 1e-12);
}

TEST_CASE("T-29: the amplitude belongs to the rotated lanes of a suffix head", "[checkpoint][defects]") {
  json block = yarn_block(32, 4096);
  block["attention_factor"] = 1.25;
  json config = with_block(position_config("deepseek_v3"), block);
  config.update({{"qk_nope_head_dim", 32}, {"qk_rope_head_dim", 16}});
  const LayerSpec layer = resolve(config).layers[0];
  CHECK(layer.position.side == RotarySide::kSuffix);
  CHECK(layer.position.rotary_dim == 16);
  CHECK(layer.d_head == 48);
  CHECK(amplitude(layer) == 1.25);
  CHECK(resolve_frequencies(layer.position, 1).softmax_scale_factor == 1.0);
}

TEST_CASE("T-30: DeepSeek-V4's compressed layers have amplitude 1, its window layers are plain",
          "[checkpoint][defects]") {
  const DecoderConfig& config = preset("DeepSeek-V4-Flash");
  const LayerSpec& window = config.layers[0];
  CHECK(window.window == 128);
  CHECK(window.position.scaling.method == "none");
  CHECK(window.position.rope_base == 10000.0);
  const LayerSpec& compressed = config.layers[2];
  CHECK(compressed.position.scaling.method == "yarn");
  CHECK(compressed.position.scaling.factor == 16.0);
  CHECK(compressed.position.rope_base == 160000.0);
  CHECK(amplitude(compressed) == 1.0);
  CHECK(compressed.position.rotary_dim == 64);
  CHECK(compressed.d_head == 512);
  CHECK(compressed.position.side == RotarySide::kSuffix);
}

TEST_CASE("T-31, T-34: gpt-oss keeps truncate = false and its original length", "[checkpoint][defects]") {
  const LayerSpec& layer = preset("gpt-oss-20b").layers[1];
  const json golden = golden_case("rope_yarn.json", "gpt-oss");
  CHECK(worst_ratio(frequencies(layer), golden_list(golden)) < 1e-12);
  CHECK(std::abs(amplitude(layer) - golden["attention_factor"].get<double>()) < 1e-12);
  CHECK(layer.position.scaling.original_context == 4096);
  CHECK(layer.position.scaling.factor == 32.0);
}

TEST_CASE("T-32: the ramp's upper end is clamped to r - 1 and truncated by default", "[checkpoint][defects]") {
  // L0 131072 at d 64 and base 1e4: high = ceil(34.6) lies beyond r/2 - 1 = 31 and must not be pulled to it.
  json config = with_block(position_config("llama"), yarn_block(4, 131072));
  const std::vector<double> got = frequencies(resolve(config).layers[0]);
  const std::vector<double> plain = rope::default_inv_freq(64, 10000);
  const auto turns = [](double n) { return 64 * std::log(131072 / (2 * M_PI * n)) / (2 * std::log(10000.0)); };
  const double low = std::floor(turns(32)), high = std::ceil(turns(1));
  REQUIRE(high > 31);
  for (std::size_t i = 0; i < 32; ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    CHECK(std::abs(got[i] / (plain[i] * (1 - ramp) + plain[i] / 4 * ramp) - 1) < 1e-12);
  }
}

TEST_CASE("T-33: a declared length that is extended already is not multiplied again", "[checkpoint][defects]") {
  json config = with_block(position_config("llama"), yarn_block(40, 4096));
  config["max_position_embeddings"] = 163840;
  const DecoderConfig got = resolve(config);
  CHECK(got.claimed_context == 163840);
  CHECK(got.trained_context == 4096);
  CHECK(got.warnings.empty());
}

TEST_CASE("T-35: truncate in a nested block counts as in a flat one", "[checkpoint][defects]") {
  json block = yarn_block(32, 4096);
  block["truncate"] = false;
  block["rope_theta"] = 150000;
  json flat = position_config("gpt_oss");
  flat["rope_parameters"] = block;
  json nested = position_config("gpt_oss");
  nested["rope_parameters"] = {{"full_attention", block}, {"sliding_attention", block}};
  CHECK(describe_position(resolve(nested)) == describe_position(resolve(flat)));
  CHECK(worst_ratio(frequencies(resolve(nested).layers[0]), golden_list(golden_case("rope_yarn.json", "gpt-oss"))) <
        1e-12);
}

TEST_CASE("T-36: a missing original length is an error where it matters", "[checkpoint][defects]") {
  for (const char* type : {"yarn", "llama3", "longrope"}) {
    const json block = {{"rope_type", type}, {"factor", 4}, {"low_freq_factor", 1}, {"high_freq_factor", 4}};
    INFO(type);
    CHECK(contains(resolve_error(with_block(position_config("llama"), block)),
                   std::string("rope_scaling.original_max_position_embeddings is missing; rope_type ") + type));
  }
  CHECK(resolve(with_block(position_config("llama"), {{"rope_type", "linear"}, {"factor", 4}}))
            .layers[0]
            .position.scaling.factor == 4.0);
}

TEST_CASE("T-37: llama3 takes the original length of its own block", "[checkpoint][defects]") {
  const json block = {{"rope_type", "llama3"},
                      {"factor", 8},
                      {"low_freq_factor", 1},
                      {"high_freq_factor", 4},
                      {"original_max_position_embeddings", 16384}};
  const DecoderConfig got = resolve(with_block(position_config("llama", 128), block));
  CHECK(got.layers[0].position.scaling.original_context == 16384);
  const std::vector<double> list = frequencies(got.layers[0]);
  const std::vector<double> plain = rope::default_inv_freq(128, 10000);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const double period = 2 * M_PI / plain[i];
    if (period < 16384.0 / 4) CHECK(list[i] == plain[i]);
    if (period > 16384.0) CHECK(std::abs(list[i] / (plain[i] / 8) - 1) < 1e-12);
  }
}

TEST_CASE("T-39: spellings of one type are one type", "[checkpoint][defects]") {
  json tele = with_block(position_config("llama"), yarn_block(8, 4096));
  tele["rope_scaling"]["rope_type"] = "telechat3-yarn";
  CHECK(std::abs(amplitude(resolve(tele).layers[0]) - (0.07 * std::log(8.0) + 1)) < 1e-12);
  json both = with_block(position_config("llama"), yarn_block(8, 4096));
  both["rope_scaling"]["type"] = "yarn";
  CHECK(resolve(both).layers[0].position.scaling.method == "yarn");
  both["rope_scaling"]["type"] = "linear";
  CHECK(resolve_error(both) == "rope_scaling.rope_type = 'yarn' contradicts type = 'linear'");
  const json mrope = {{"type", "mrope"}, {"rope_type", "default"}, {"mrope_section", {8, 12, 12}}};
  CHECK(resolve(with_block(position_config("qwen2_vl"), mrope)).layers[0].position.scaling.method == "none");
}

TEST_CASE("T-40: theta is read, wherever a version of the format keeps it", "[checkpoint][defects]") {
  json v4 = position_config("llama");
  v4["rope_theta"] = 1e6;
  json v5 = position_config("llama");
  v5["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 1e6}};
  json neox = position_config("gpt_neox");
  neox["rotary_emb_base"] = 1e6;
  neox["rotary_pct"] = 1.0;
  for (const json& config : {v4, v5, neox}) {
    CHECK(frequencies(resolve(config).layers[0]) == rope::default_inv_freq(64, 1e6));
    CHECK(frequencies(resolve(config).layers[0]) != rope::default_inv_freq(64, 1e4));
  }
}

}  // namespace
}  // namespace fathom::checkpoint
