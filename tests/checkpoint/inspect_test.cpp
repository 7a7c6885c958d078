#include "harness/checkpoint/inspect.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"

namespace fathom::checkpoint {
namespace {

using nlohmann::json;

DecoderConfig mixed_model() {
  DecoderConfig config;
  config.name = "mixed";
  config.architecture = "fathom";
  config.claimed_context = 4096;
  config.warnings = {"careful"};
  LayerSpec rope;
  rope.n_heads = 4;
  rope.n_kv_heads = 2;
  rope.d_head = 16;
  rope.window = 32;
  rope.position.rotary_dim = 8;
  rope.position.rope_base = 10000;
  rope.position.scaling.method = "dynamic";
  rope.position.scaling.factor = 2;
  rope.position.scaling.original_context = 4096;
  LayerSpec alibi = rope;
  alibi.window.reset();
  alibi.softmax_scale = 0.5;
  alibi.position = PositionSpec{};
  alibi.position.kind = "alibi";
  alibi.position.options = {{"max_bias", "16"}, {"mode", "soft"}};
  config.layers = {rope, alibi};
  return config;
}

TEST_CASE("inspect: the JSON has exactly the promised keys", "[checkpoint][inspect]") {
  const json out = json::parse(inspect_json(mixed_model(), 1));
  std::vector<std::string> keys;
  for (const auto& entry : out.items()) keys.push_back(entry.key());
  CHECK(keys == std::vector<std::string>{"architecture", "claimed_context", "layers", "n_layers", "name",
                                         "trained_context", "warnings"});
  keys.clear();
  for (const auto& entry : out["layers"][0].items()) keys.push_back(entry.key());
  CHECK(keys == std::vector<std::string>{"attention_factor", "d_head", "index", "inv_freq", "layout", "n_heads",
                                         "n_kv_heads", "parameters", "position", "rotary_dim", "softmax_scale",
                                         "window"});
}

TEST_CASE("inspect: rotating layers show the list of the asked length", "[checkpoint][inspect]") {
  const DecoderConfig config = mixed_model();
  const json shorter = json::parse(inspect_json(config, 4096))["layers"][0];
  const json longer = json::parse(inspect_json(config, 8192))["layers"][0];
  CHECK(shorter["inv_freq"].get<std::vector<double>>() == rope::default_inv_freq(8, 10000));
  CHECK(longer["inv_freq"].get<std::vector<double>>() == resolve_frequencies(config.layers[0].position, 8192).inv_freq);
  CHECK(longer["inv_freq"] != shorter["inv_freq"]);
  CHECK(shorter["layout"] == "split_half");
  CHECK(shorter["window"] == 32);
  CHECK(shorter["softmax_scale"] == 0.25);
  CHECK(shorter["parameters"]["scaling"] == "dynamic");
  CHECK(shorter["parameters"]["table_dtype"] == "float32");
}

TEST_CASE("inspect: what does not apply is null, and the scheme's own numbers show", "[checkpoint][inspect]") {
  const json out = json::parse(inspect_json(mixed_model(), 1));
  CHECK(out["trained_context"].is_null());
  CHECK(out["warnings"] == json({"careful"}));
  const json layer = out["layers"][1];
  CHECK(layer["index"] == 1);
  CHECK(layer["position"] == "alibi");
  CHECK(layer["layout"].is_null());
  CHECK(layer["window"].is_null());
  CHECK(layer["inv_freq"].empty());
  CHECK(layer["attention_factor"] == 1.0);
  CHECK(layer["softmax_scale"] == 0.5);
  CHECK(layer["parameters"]["max_bias"] == 16);
  CHECK(layer["parameters"]["mode"] == "soft");
  CHECK(layer["parameters"]["slopes"] == json({1.0 / 16, 1.0 / 256, 1.0 / 4096, 1.0 / 65536}));
}

}  // namespace
}  // namespace fathom::checkpoint
