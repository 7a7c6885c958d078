// Presets and layer patterns against the reference tables, row by row.

#include "harness/checkpoint/presets.h"

#include <set>

#include "tests/checkpoint/config_builders.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

namespace fathom::checkpoint {
namespace {

using nlohmann::json;
using test::resolve;

json golden_rows() {
  return test::read_golden("model_presets.json").at("cases");
}

const ModelPreset& preset(const std::string& name) {
  const ModelPreset* found = find_model_preset(name);
  INFO(name);
  REQUIRE(found != nullptr);
  return *found;
}

/// The layer that a row's single figure speaks of: the one that sees everything, else any that rotates.
const LayerSpec& main_layer(const DecoderConfig& config) {
  for (const LayerSpec& layer : config.layers) {
    if (layer.softmax_attention && layer.position.rotary_dim > 0 && !layer.window) return layer;
  }
  for (const LayerSpec& layer : config.layers) {
    if (layer.softmax_attention && !layer.window) return layer;
  }
  return config.layers.front();
}

void check_scaling(const json& declared, const PositionSpec& position) {
  if (!declared.is_object()) {
    CHECK(position.scaling.method == "none");
    return;
  }
  const std::string type = declared.contains("rope_type") ? declared["rope_type"] : declared["type"];
  CHECK(position.scaling.method == (type == "default" ? "none" : type));
  if (declared.contains("factor")) CHECK(position.scaling.factor == declared["factor"].get<double>());
  if (declared.contains("original_max_position_embeddings")) {
    CHECK(position.scaling.original_context == declared["original_max_position_embeddings"].get<std::int64_t>());
  }
}

void check_row(const json& row, const DecoderConfig& config) {
  const LayerSpec& layer = main_layer(config);
  CHECK(config.n_layers() == row["layers"]);
  CHECK(config.d_model == row["hidden_size"]);
  CHECK(layer.n_heads == row["heads"]);
  CHECK(layer.position.rotary_dim == row["rotary_dim"]);
  CHECK(layer.d_head == row["head_dim"]);
  CHECK(layer.n_kv_heads == row["kv_heads"]);
  if (row["rotary_dim"] == 0) return;
  CHECK(layer.position.rope_base == row["rope_theta"].get<double>());
  const std::string layout = row["layout"];
  CHECK((layer.position.layout == RopeLayout::kInterleaved) == (layout.rfind("interleaved", 0) == 0));
  CHECK((layer.position.side == RotarySide::kSuffix) == (layout.find("suffix") != std::string::npos));
  check_scaling(row["rope_scaling"], layer.position);
}

TEST_CASE("presets: every row of the reference table resolves to its figures", "[checkpoint][presets][golden]") {
  const json rows = golden_rows();
  REQUIRE(rows.size() == model_presets().size());
  // Their rows hold one figure for two kinds of layer; they are checked by name below.
  const std::set<std::string> two_kinds = {"Gemma-4-26B-A4B", "DeepSeek-V4-Flash"};
  std::size_t checked = 0;
  for (const json& row : rows) {
    const std::string name = row["model"];
    INFO(name);
    const ModelPreset& found = preset(name);
    CHECK(found.source == row["source"]);
    CHECK(found.claimed == (row["claimed_context"].is_null() ? 0 : row["claimed_context"].get<std::int64_t>()));
    CHECK(found.config.claimed_context == found.claimed);
    CHECK(found.config.name == name);
    if (two_kinds.count(name) == 0) check_row(row, found.config);
    ++checked;
  }
  CHECK(checked == 63);
}

TEST_CASE("presets: Gemma-4 has two kinds of heads, p-RoPE where it sees everything", "[checkpoint][presets]") {
  const DecoderConfig& config = preset("Gemma-4-26B-A4B").config;
  const LayerSpec& sliding = config.layers[0];
  CHECK(sliding.d_head == 256);
  CHECK(sliding.n_kv_heads == 8);
  CHECK(sliding.position.rotary_dim == 256);
  CHECK(sliding.position.rope_base == 10000.0);
  CHECK(sliding.softmax_scale == 1.0);
  const LayerSpec& full = config.layers[5];
  CHECK(full.d_head == 512);
  CHECK(full.n_kv_heads == 2);
  CHECK_FALSE(full.window.has_value());
  const std::vector<double> theta = test::frequencies(full);
  REQUIRE(theta.size() == 256);
  CHECK(theta[63] > 0);
  CHECK(theta[64] == 0);
}

TEST_CASE("presets: names are found in any case, others are not", "[checkpoint][presets]") {
  CHECK(find_model_preset("llama-3.1-8b") == &preset("Llama-3.1-8B"));
  CHECK(find_model_preset("Llama-3.1-9B") == nullptr);
}

TEST_CASE("layer patterns: every case of the reference", "[checkpoint][patterns][golden]") {
  const std::map<std::string, std::string> stand_for = {{"SmolLM3-3B", "SmolLM3-3B"},
                                                        {"Llama-4 Scout/Maverick", "Llama-4-Scout-17B-16E"},
                                                        {"Gemma-3 (all), pattern 6", "Gemma-3-4B"},
                                                        {"Gemma-4-26B-A4B", "Gemma-4-26B-A4B"},
                                                        {"gpt-oss", "gpt-oss-20b"},
                                                        {"MiMo-V2-Flash", "MiMo-V2-Flash"},
                                                        {"Inkling", "Inkling (text)"},
                                                        {"Qwen3.5", "Qwen3.5-27B"}};
  int checked = 0;
  const json golden = test::read_golden("layer_patterns.json");
  for (const json& entry : golden.at("cases")) {
    const std::string model = entry["model"];
    INFO(model);
    if (entry["layers"].is_null()) {  // rules without a list: checked by the two cases below
      ++checked;
      continue;
    }
    const DecoderConfig& config = preset(stand_for.at(model)).config;
    REQUIRE(config.n_layers() == entry["layers"]);
    for (std::size_t i = 0; i < config.layers.size(); ++i) {
      const LayerSpec& layer = config.layers[i];
      if (entry.contains("use_rope")) CHECK((layer.position.rotary_dim > 0) == (entry["use_rope"][i] == 1));
      if (entry.contains("is_full")) {
        const bool full = layer.softmax_attention && !layer.window && !layer.chunk;
        CHECK(full == (entry["is_full"][i] == 1));
      }
    }
    ++checked;
  }
  CHECK(checked == 10);
}

TEST_CASE("layer patterns: Cohere2 rotates where it slides", "[checkpoint][patterns]") {
  json config = test::position_config("cohere2");
  config["sliding_window"] = 16;
  const DecoderConfig got = resolve(config);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(got.layers[i].window.has_value() == (i != 3));
    CHECK((got.layers[i].position.rotary_dim > 0) == (i != 3));
  }
}

TEST_CASE("layer patterns: EXAONE-4 and AFMoE rotate everywhere without a window", "[checkpoint][patterns]") {
  for (const std::string model_type : {"exaone4", "exaone_moe", "afmoe"}) {
    json config = test::position_config(model_type);
    config["sliding_window"] = 16;
    INFO(model_type);
    CHECK(resolve(config).layers[2].position.rotary_dim == 64);
    CHECK(resolve(config).layers[3].position.rotary_dim == 0);
    config["sliding_window"] = nullptr;
    CHECK(resolve(config).layers[3].position.rotary_dim == 64);
    CHECK_FALSE(resolve(config).layers[0].window.has_value());
  }
  json letters = test::position_config("exaone4");
  letters["sliding_window_pattern"] = "LG";
  CHECK(resolve(letters).layers[0].window == 4096);
  CHECK_FALSE(resolve(letters).layers[1].window.has_value());
}

TEST_CASE("layer patterns: hybrids have layers without softmax attention", "[checkpoint][patterns]") {
  const DecoderConfig& nano = preset("Nemotron-3-Nano-30B-A3B").config;
  std::vector<std::size_t> attention;
  for (std::size_t i = 0; i < nano.layers.size(); ++i) {
    if (nano.layers[i].softmax_attention) attention.push_back(i);
  }
  CHECK(attention == std::vector<std::size_t>{5, 12, 19, 26, 33, 42});
  CHECK(nano.layers[5].position.kind == "nope");
  const DecoderConfig& kimi = preset("Kimi-K3").config;
  CHECK(kimi.layers[3].softmax_attention);
  CHECK(kimi.layers[92].softmax_attention);
  CHECK_FALSE(kimi.layers[4].softmax_attention);
  CHECK(kimi.layers[3].position.kind == "nope");
  CHECK(kimi.layers[3].d_head == 192);

  json jamba = test::position_config("jamba");
  jamba["attn_layer_period"] = 2;
  jamba["attn_layer_offset"] = 1;
  CHECK_FALSE(resolve(jamba).layers[0].softmax_attention);
  CHECK(resolve(jamba).layers[1].softmax_attention);
  CHECK(resolve(jamba).layers[1].position.rotary_dim == 0);
}

}  // namespace
}  // namespace fathom::checkpoint
