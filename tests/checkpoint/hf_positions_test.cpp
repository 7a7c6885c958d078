// The resolver on every fixture, in both spellings, and on the keys that change positions.

#include "harness/checkpoint/hf_positions.h"

#include <cmath>
#include <filesystem>

#include "harness/checkpoint/checkpoint.h"
#include "harness/checkpoint/hf_family.h"
#include "tests/checkpoint/config_builders.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/shared_dir.h"

namespace fathom::checkpoint {
namespace {

using nlohmann::json;
using test::contains;
using test::position_config;
using test::resolve;
using test::resolve_error;
using test::with_block;

std::vector<std::string> fixture_folders() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(test::shared_path("fixtures/tiny"))) {
    if (entry.is_directory()) out.push_back(entry.path().string());
  }
  return out;
}

/// The layer that a buffer of the reference serves: "full_attention_inv_freq", "sliding_attention_inv_freq", or one of
/// all layers that rotate.
const LayerSpec* served_layer(const DecoderConfig& config, const std::string& buffer) {
  for (const LayerSpec& layer : config.layers) {
    if (layer.position.rotary_dim == 0) continue;
    if (contains(buffer, "sliding") && !layer.window) continue;
    if (contains(buffer, "full") && layer.window) continue;
    return &layer;
  }
  return nullptr;
}

TEST_CASE("hf positions: the frequencies in force equal the reference on every fixture that rotates",
          "[checkpoint][hf][fixtures]") {
  FATHOM_NEEDS_SHARED("fixtures/tiny/llama/config.json");
  int tables = 0;
  for (const std::string& folder : fixture_folders()) {
    const json expected = test::read_json_file(folder + "/expected.json");
    if (!expected.contains("debug_rope")) continue;
    INFO(folder);
    const auto n_ids = static_cast<std::int64_t>(expected["input_ids"].size());
    const DecoderConfig config = read_config(folder + "/config.json");
    for (const json& entry : expected["debug_rope"]) {
      const LayerSpec* layer = served_layer(config, entry["buffer"]);
      if (layer == nullptr) {
        // Falcon with ALiBi makes a table that nothing uses.
        CHECK(contains(folder, "falcon_alibi"));
        continue;
      }
      const rope::RopeFrequencies got = resolve_frequencies(layer->position, n_ids);
      const std::string buffer = entry["buffer"];
      // Other buffers hold the list before scaling.
      if (contains(buffer, "original")) continue;
      CHECK(test::worst_ratio(got.inv_freq, entry["inv_freq"].get<std::vector<double>>()) < 2e-6);
      CHECK(std::abs(got.attention_factor - entry["attention_scaling"].get<double>()) < 1e-6);
      ++tables;
    }
  }
  CHECK(tables >= 37);
}

TEST_CASE("hf positions: both spellings of every fixture resolve to the same", "[checkpoint][hf][fixtures]") {
  FATHOM_NEEDS_SHARED("fixtures/tiny/llama/config.json");
  int pairs = 0;
  for (const std::string& folder : fixture_folders()) {
    if (!std::filesystem::exists(folder + "/config_v4.json")) continue;
    INFO(folder);
    const DecoderConfig v5 = read_config(folder + "/config.json");
    const DecoderConfig v4 = read_config(folder + "/config_v4.json");
    CHECK(describe_position(v4) == describe_position(v5));
    CHECK(v4.trained_context == v5.trained_context);
    ++pairs;
  }
  CHECK(pairs >= 37);
}

TEST_CASE("hf positions: every fixture resolves, without a warning unless it has keys that nothing reads",
          "[checkpoint][hf][fixtures]") {
  FATHOM_NEEDS_SHARED("fixtures/tiny/llama/config.json");
  int folders = 0;
  for (const std::string& folder : fixture_folders()) {
    INFO(folder);
    const DecoderConfig config = read_config(folder + "/config.json");
    CHECK(config.n_layers() >= 2);
    const bool unused_rope = contains(folder, "falcon_alibi");
    CHECK(config.warnings.size() == (unused_rope ? 1 : 0));
    ++folders;
  }
  CHECK(folders == 46);
}

struct ExpectedScheme {
  const char* fixture;
  const char* kind;
  std::map<std::string, std::string> options;
};

TEST_CASE("hf positions: the schemes of the fixtures that do not rotate", "[checkpoint][hf][fixtures]") {
  FATHOM_NEEDS_SHARED("fixtures/tiny/bloom/config.json");
  const std::vector<ExpectedScheme> schemes = {
      {"bloom", "alibi", {}},
      {"mpt", "alibi", {{"max_bias", "8"}}},
      {"falcon_alibi", "alibi", {{"before_scale", "on"}}},
      {"gpt2", "learned", {{"positions", "96"}}},
      {"opt", "learned", {{"positions", "96"}, {"offset", "2"}}},
      {"t5", "t5", {{"buckets", "16"}, {"max_distance", "40"}, {"shared", "on"}}},
      {"inkling_text", "inkling", {{"d_rel", "4"}, {"extent", "12"}}}};
  for (const ExpectedScheme& expected : schemes) {
    INFO(expected.fixture);
    const DecoderConfig config = read_config(test::shared_path(std::string("fixtures/tiny/") + expected.fixture));
    CHECK(config.layers[0].position.kind == expected.kind);
    CHECK(config.layers[0].position.options == expected.options);
    CHECK(config.layers[0].position.rotary_dim == 0);
  }
  const DecoderConfig inkling = read_config(test::shared_path("fixtures/tiny/inkling_text"));
  CHECK(inkling.layers[0].softmax_scale == 1.0 / 8);  // window layers: swa_head_dim
  CHECK(inkling.layers[0].window == 12);
  CHECK(inkling.layers[1].softmax_scale == 1.0 / 16);
  CHECK(inkling.layers[1].position.options.at("extent") == "24");
  CHECK(inkling.layers[1].position.options.at("log_scaling_floor") == "16");
  const DecoderConfig xlstm = read_config(test::shared_path("fixtures/tiny/xlstm"));
  CHECK_FALSE(xlstm.layers[0].softmax_attention);
}

TEST_CASE("hf positions: windows, chunks, scales and temperatures of the fixtures", "[checkpoint][hf][fixtures]") {
  FATHOM_NEEDS_SHARED("fixtures/tiny/llama4_text/config.json");
  const auto read = [](const char* name) {
    return read_config(test::shared_path(std::string("fixtures/tiny/") + name));
  };
  const DecoderConfig llama4 = read("llama4_text");
  CHECK(llama4.layers[0].chunk == 20);
  CHECK(llama4.layers[0].position.temperature.kind == rope::TemperatureKind::kNone);
  CHECK_FALSE(llama4.layers[1].chunk.has_value());
  CHECK(llama4.layers[1].position.kind == "nope");
  CHECK(llama4.layers[1].position.temperature.kind == rope::TemperatureKind::kLlama4);
  CHECK(llama4.layers[1].position.temperature.scale == 0.4);
  CHECK(llama4.layers[1].position.temperature.length == 16);

  const rope::QueryTemperature ministral = read("ministral3").layers[1].position.temperature;
  CHECK(ministral.kind == rope::TemperatureKind::kMinistral3);
  CHECK(ministral.scale == 0.4);
  CHECK(ministral.length == 32);

  CHECK(read("mistral_swa").layers[0].window == 16);
  CHECK_FALSE(read("qwen2_swa").layers[0].window.has_value());
  CHECK(read("qwen2_swa").layers[1].window == 16);
  CHECK(read("starcoder2").layers[0].window == 20);
  CHECK(read("gemma2").layers[0].softmax_scale == 1 / std::sqrt(24.0));
  CHECK(read("granite").layers[0].softmax_scale == 0.15);
  CHECK(read("t5").layers[0].softmax_scale == 1.0);
  CHECK_FALSE(read("minimax").layers[0].softmax_attention);
  CHECK(read("minimax").layers[1].position.rotary_dim == 16);
  const LayerSpec latent = read("deepseek_v3").layers[0];
  CHECK(latent.d_head == 24);
  CHECK(latent.position.side == RotarySide::kSuffix);
  CHECK(latent.position.layout == RopeLayout::kInterleaved);
}

TEST_CASE("hf positions: a file with position keys only is enough", "[checkpoint][hf]") {
  const json bare = {{"model_type", "llama"}, {"head_dim", 16}, {"rope_theta", 5e5}};
  const DecoderConfig config = resolve(bare);
  CHECK(test::frequencies(config.layers[0]) == rope::default_inv_freq(16, 5e5));
  CHECK(config.claimed_context == 0);
  CHECK(config.warnings.size() == 2);
  CHECK(contains(resolve_error({{"model_type", "llama"}, {"rope_theta", 5e5}}), "head_dim is missing"));
  CHECK(contains(resolve_error({{"model_type", "llama"}, {"head_dim", 1 << 27}, {"rope_theta", 5e5}}),
                 "134217728 rotated lanes a head; at most 65536 are allowed"));
  json alibi = {{"model_type", "bloom"}, {"hidden_size", 64}};
  CHECK(contains(resolve_error(alibi), "head_dim is missing"));
}

TEST_CASE("hf positions: class defaults stand where the file is silent", "[checkpoint][hf]") {
  const auto theta = [](const char* model_type) {
    return resolve(position_config(model_type)).layers[0].position.rope_base;
  };
  CHECK(theta("llama") == 1e4);
  CHECK(theta("gpt_oss") == 1.5e5);
  CHECK(theta("smollm3") == 2e6);
  CHECK(theta("minimax_m3") == 5e6);
  const auto width = [](const char* model_type) {
    return resolve(position_config(model_type)).layers[0].position.rotary_dim;
  };
  CHECK(width("gpt_neox") == 16);
  CHECK(width("stablelm") == 16);
  CHECK(width("phi") == 32);
  CHECK(width("qwen3_next") == 0);  // linear attention
  CHECK(resolve(position_config("qwen3_next")).layers[3].position.rotary_dim == 16);
  CHECK(resolve(position_config("mistral")).layers[0].window == 4096);
  json none = position_config("mistral");
  none["sliding_window"] = nullptr;
  CHECK_FALSE(resolve(none).layers[0].window.has_value());
}

TEST_CASE("hf positions: a model of several parts keeps its decoder in text_config", "[checkpoint][hf]") {
  const json gemma = {{"model_type", "gemma3"},
                      {"text_config",
                       {{"model_type", "gemma3_text"},
                        {"hidden_size", 2560},
                        {"num_hidden_layers", 34},
                        {"rope_scaling", {{"factor", 8.0}, {"rope_type", "linear"}}},
                        {"sliding_window", 1024}}}};
  const DecoderConfig config = resolve(gemma);
  CHECK(config.architecture == "gemma3_text");
  CHECK(config.claimed_context == 131072);
  CHECK(config.layers[5].position.scaling.method == "linear");
  CHECK(config.layers[0].position.scaling.method == "none");
  CHECK(config.warnings.empty());
  CHECK(contains(resolve_error({{"model_type", "gemma3"}}), "text_config is missing"));
}

TEST_CASE("hf positions: every row of the table names rules that exist", "[checkpoint][hf]") {
  std::size_t resolved = 0, text_only = 0;
  for (const std::string& model_type : hf_model_types()) {
    INFO(model_type);
    json config = position_config(model_type, 192);  // a width whose every share is even
    config.update({{"hybrid_override_pattern", "M*-E"},
                   {"linear_attn_config", {{"full_attn_layers", {4}}}},
                   {"num_key_value_heads", 4},
                   {"qk_nope_head_dim", 48},
                   {"qk_rope_head_dim", 16},
                   {"sliding_window", 16}});
    if (!find_hf_family(model_type)->text_model_type.empty()) {
      CHECK(contains(resolve_error(config), "text_config is missing"));
      ++text_only;
      continue;
    }
    const DecoderConfig got = resolve(config);
    CHECK(got.architecture == model_type);
    CHECK(got.n_layers() == 4);
    ++resolved;
  }
  CHECK(resolved > 100);
  CHECK(text_only > 10);
}

TEST_CASE("hf positions: messages name the key that the file holds", "[checkpoint][hf][errors]") {
  json gpt2 = {{"model_type", "gpt2"}, {"n_embd", 64}, {"n_layer", "two"}, {"n_head", 4}, {"n_positions", 96}};
  CHECK(resolve_error(gpt2) == "n_layer = \"two\" is not a 64-bit integer");
  gpt2["n_layer"] = 2;
  gpt2["n_head"] = 0;
  CHECK(resolve_error(gpt2) == "n_head = 0 is outside 1..268435456");
  gpt2["n_head"] = 4;
  CHECK(resolve(gpt2).layers[1].d_head == 16);
  CHECK(resolve(gpt2).claimed_context == 96);
}

TEST_CASE("hf positions: unknown types are refused, never guessed", "[checkpoint][hf][errors]") {
  CHECK(
      contains(resolve_error(position_config("lama")), "model_type = 'lama' is not supported; did you mean 'llama'?"));
  CHECK(contains(resolve_error(with_block(position_config("llama"), {{"rope_type", "spiral"}, {"factor", 2}})),
                 "rope_scaling.rope_type = 'spiral' is not supported"));
  json layers = position_config("qwen2");
  layers["layer_types"] = {"full_attention", "full_attention", "full_attention", "spiral_attention"};
  CHECK(resolve_error(layers) == "layer_types holds unknown 'spiral_attention'");
  layers["layer_types"] = {"full_attention"};
  CHECK(resolve_error(layers) == "layer_types has 1 entries for 4 layers");
}

TEST_CASE("hf positions: keys that the class does not read are warned about", "[checkpoint][hf]") {
  for (const char* key : {"sliding_window", "no_rope_layers", "rope_interleaved", "alibi"}) {
    json config = position_config("llama");
    config[key] = json::array({1, 1, 1, 0});
    INFO(key);
    const DecoderConfig got = resolve(config);
    REQUIRE(got.warnings.size() == 1);
    CHECK(contains(got.warnings[0], std::string(key) + " is not used by model_type llama"));
  }
  json nemotron = position_config("nemotron_h");
  nemotron["hybrid_override_pattern"] = "M*-E";
  nemotron["rope_theta"] = 10000;
  CHECK(contains(resolve(nemotron).warnings.at(0), "rope_theta is not used"));
}

TEST_CASE("hf positions: impossible values are refused by key", "[checkpoint][hf][errors]") {
  const auto error = [](const char* key, const json& value) {
    json config = position_config("llama");
    config[key] = value;
    return resolve_error(config);
  };
  CHECK(error("head_dim", 63) == "head_dim = 63 must be even and at least 2: all of it rotates");
  CHECK(error("rope_theta", -1) == "rope_theta = -1 must be above 0");
  CHECK(error("rope_theta", "10000") == "rope_theta = \"10000\" is not a finite number");
  json minimax = position_config("minimax_m2");
  minimax["rotary_dim"] = 33;
  CHECK(resolve_error(minimax) == "rotary_dim = 33 must be an even number in 2..64");
  CHECK(error("num_key_value_heads", 3) == "num_key_value_heads = 3 does not divide num_attention_heads = 4");
  CHECK(contains(error("max_position_embeddings", 0), "max_position_embeddings = 0 is outside"));
  CHECK(contains(error("rope_scaling", {{"type", "linear"}, {"factor", 0}}),
                 "rope_scaling.factor = 0 must be at least 1"));
  CHECK(contains(error("rope_scaling", {{"type", "linear"}, {"factor", "8"}}),
                 "rope_scaling.factor = \"8\" is not a finite number"));
  CHECK(contains(
      resolve_error(with_block({{"model_type", "llama"}, {"head_dim", 8}}, {{"type", "dynamic"}, {"factor", 2}})),
      "max_position_embeddings is missing"));
}

TEST_CASE("hf positions: first-generation Qwen switches its steps and log-n by keys of their own", "[checkpoint][hf]") {
  json qwen = position_config("qwen");
  qwen.erase("head_dim");
  qwen.update({{"kv_channels", 64},
               {"rotary_emb_base", 10000},
               {"rotary_pct", 1.0},
               {"seq_length", 2048},
               {"use_dynamic_ntk", true},
               {"use_logn_attn", true},
               {"max_position_embeddings", 8192}});
  const DecoderConfig config = resolve(qwen);
  const LayerSpec& layer = config.layers[0];
  // alpha = 2^(ceil(log2(8192 / 2048)) + 1) - 1 = 7
  const double base = 10000 * std::pow(7.0, 64.0 / 62.0);
  CHECK(test::worst_ratio(test::frequencies(layer, 8192), rope::default_inv_freq(64, base)) < 1e-12);
  CHECK(layer.position.temperature.kind == rope::TemperatureKind::kLogN);
  CHECK(layer.position.temperature.length == 2048);
  CHECK(config.warnings.empty());
}

}  // namespace
}  // namespace fathom::checkpoint
