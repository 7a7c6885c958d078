#include "harness/checkpoint/hf_config.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/checkpoint.h"
#include "tests/checkpoint/config_builders.h"
#include "tests/checkpoint/file_builders.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/shared_dir.h"

namespace fathom::checkpoint {
namespace {

using nlohmann::json;
using test::contains;
using test::model_error;
using test::resolve;
using test::resolve_error;

json llama_json() {
  return {{"model_type", "llama"},    {"hidden_size", 32},        {"num_hidden_layers", 2},
          {"num_attention_heads", 4}, {"num_key_value_heads", 2}, {"head_dim", 16},
          {"intermediate_size", 64},  {"vocab_size", 96},         {"max_position_embeddings", 128},
          {"rms_norm_eps", 1e-5},     {"rope_theta", 500000.0}};
}

/// What the decoder of the file's family reads.
DecoderConfig read(const json& config) {
  const JsonObject object = JsonObject::parse(config.dump(), "config.json", 16);
  return architectures().at("llama").config_from_json(object);
}

std::string read_error(const json& config) {
  const std::string message = model_error([&] { read(config); });
  return message.substr(message.find(' ') + 1);
}

json with(const std::string& key, json value) {
  json config = llama_json();
  config[key] = std::move(value);
  return config;
}

json with_rope(json block) {
  return with("rope_scaling", std::move(block));
}

TEST_CASE("hf config: a llama's shape is read", "[checkpoint][hf]") {
  json source = llama_json();
  source["attention_bias"] = true;
  source["tie_word_embeddings"] = true;
  const DecoderConfig config = read(source);
  CHECK(config.architecture == "llama");
  CHECK(config.n_layers() == 2);
  CHECK(config.d_model == 32);
  CHECK(config.vocab_size == 96);
  CHECK(config.claimed_context == 128);
  CHECK(config.trained_context == std::nullopt);
  CHECK(config.norm_eps == 1e-5);
  CHECK(config.activation == Activation::kSilu);
  CHECK(config.tied_head);
  CHECK(config.attention_bias);
  CHECK(config.attention_out_bias);
  CHECK_FALSE(config.mlp_bias);
  CHECK(config.warnings.empty());
  const LayerSpec& layer = config.layers[1];
  CHECK(layer.n_heads == 4);
  CHECK(layer.n_kv_heads == 2);
  CHECK(layer.d_head == 16);
  CHECK(layer.d_ff == 64);
  CHECK(layer.position.layout == RopeLayout::kSplitHalf);
  CHECK(layer.position.rotary_dim == 16);
  CHECK(layer.position.rope_base == 500000.0);
  CHECK(layer.position.scaling.method == "none");
}

TEST_CASE("hf config: defaults are transformers' own", "[checkpoint][hf]") {
  json source = llama_json();
  for (const char* key : {"num_key_value_heads", "head_dim", "rope_theta"}) source.erase(key);
  source["rope_scaling"] = nullptr;
  const DecoderConfig config = read(source);
  CHECK(config.layers[0].n_kv_heads == 4);
  CHECK(config.layers[0].d_head == 8);
  CHECK(config.layers[0].position.rope_base == 10000.0);
}

TEST_CASE("hf config: both spellings of every tiny llama give the frequencies in force", "[checkpoint][hf]") {
  FATHOM_NEEDS_SHARED("fixtures/tiny/llama/config.json");
  int run = 0;
  for (const char* name : {"llama", "llama_theta500k", "llama_linear", "llama_dynamic", "llama_yarn",
                           "llama_yarn_mscale", "llama_llama3", "llama_longrope"}) {
    const std::string folder = test::shared_path(std::string("fixtures/tiny/") + name);
    const json expected = test::read_json_file(folder + "/expected.json");
    const auto n_ids = static_cast<std::int64_t>(expected["input_ids"].size());
    for (const char* file : {"/config.json", "/config_v4.json"}) {
      INFO(name << file);
      const DecoderConfig config = read_config(folder + file);
      CHECK(config.warnings.empty());
      const PositionSpec& position = config.layers[0].position;
      // The reference lists the table in force after a forward pass over all input ids.
      for (const json& entry : expected["debug_rope"]) {
        const std::string buffer = entry["buffer"];
        const auto inv_freq = entry["inv_freq"].get<std::vector<double>>();
        const rope::RopeFrequencies got = resolve_frequencies(position, n_ids);
        REQUIRE(got.inv_freq.size() == inv_freq.size());
        if (buffer == "inv_freq") {
          for (std::size_t i = 0; i < inv_freq.size(); ++i) {
            CHECK(std::abs(got.inv_freq[i] / inv_freq[i] - 1) < 2e-6);
          }
        }
        CHECK(std::abs(got.attention_factor - entry["attention_scaling"].get<double>()) < 1e-6);
      }
      ++run;
    }
  }
  CHECK(run == 16);
}

TEST_CASE("hf config: rope blocks in all their spellings", "[checkpoint][hf]") {
  const auto scaling = [](const json& config) { return read(config).layers[0].position.scaling; };
  CHECK(scaling(with_rope({{"type", "linear"}, {"factor", 4}})).method == "linear");
  CHECK(scaling(with_rope({{"rope_type", "linear"}, {"type", "linear"}, {"factor", 4}})).factor == 4.0);
  CHECK(scaling(with_rope({{"rope_type", "default"}})).method == "none");
  CHECK(scaling(with_rope({{"rope_type", "mrope"}, {"mrope_section", {2, 3, 3}}})).method == "none");

  const ScalingSpec dynamic = scaling(with_rope({{"rope_type", "dynamic"}, {"factor", 2.0}}));
  CHECK(dynamic.method == "dynamic");
  CHECK(dynamic.original_context == 128);

  json hunyuan = with_rope({{"type", "dynamic"}, {"alpha", 1000}, {"factor", 1}});
  CHECK(scaling(hunyuan).method == "dynamic");  // a llama has no alpha
  hunyuan["model_type"] = "hunyuan_v1_dense";
  const ScalingSpec alpha = resolve(hunyuan).layers[0].position.scaling;
  CHECK(alpha.method == "ntk");
  CHECK(alpha.factor == 1000.0);

  json yarn = {{"rope_type", "yarn"}, {"original_max_position_embeddings", 32}, {"beta_fast", 0}, {"truncate", false}};
  const ScalingSpec ratio = scaling(with_rope(yarn));
  CHECK(ratio.factor == 4.0);  // 128 / 32
  CHECK(ratio.original_context == 32);
  CHECK(ratio.options.values() == std::map<std::string, std::string>{{"truncate", "off"}});
  yarn["factor"] = 2;
  CHECK(scaling(with_rope(yarn)).factor == 2.0);  // an explicit factor is not replaced by the ratio

  json outer = with_rope({{"rope_type", "yarn"}, {"factor", 2}, {"original_max_position_embeddings", 32}});
  outer["original_max_position_embeddings"] = 64;
  CHECK(scaling(outer).original_context == 64);

  json su = with_rope({{"type", "su"},
                       {"original_max_position_embeddings", 32},
                       {"short_factor", json::array({1, 1, 1, 1, 1, 1, 1, 1})},
                       {"long_factor", json::array({1, 2, 2, 2, 2, 2, 2, 2.5})}});
  CHECK(scaling(su).method == "longrope");
  CHECK(scaling(su).options.values().at("long_factor") == "1,2,2,2,2,2,2,2.5");
}

TEST_CASE("hf config: theta and partial width are taken from the block first", "[checkpoint][hf]") {
  json config = with("rope_parameters", {{"rope_type", "default"}, {"rope_theta", 77}, {"partial_rotary_factor", 0.5}});
  config["partial_rotary_factor"] = 1.0;
  const PositionSpec position = resolve(config).layers[0].position;
  CHECK(position.rope_base == 77.0);
  CHECK(position.rotary_dim == 8);
}

TEST_CASE("hf config: the rotated width truncates as Python's int does", "[checkpoint][hf]") {
  json mimo = with("head_dim", 192);
  mimo["partial_rotary_factor"] = 0.334;
  CHECK(resolve(mimo).layers[0].position.rotary_dim == 64);
  json other = with("head_dim", 100);
  other["partial_rotary_factor"] = 0.29;
  CHECK(resolve(other).layers[0].position.rotary_dim == 28);
  json odd = with("head_dim", 100);
  odd["partial_rotary_factor"] = 0.25;
  CHECK(resolve_error(odd) ==
        "partial_rotary_factor = 0.25 of head_dim = 100 rotates 25 lanes; an even number is needed");
}

TEST_CASE("hf config: keys of the block that nobody reads are warned about", "[checkpoint][hf]") {
  const DecoderConfig config = read(with_rope({{"rope_type", "linear"}, {"factor", 2}, {"beta_fast", 32}}));
  REQUIRE(config.warnings.size() == 1);
  CHECK(contains(config.warnings[0], "rope_scaling.beta_fast is not used by rope_type linear"));
}

TEST_CASE("hf config: missing and impossible values are refused by key", "[checkpoint][hf][errors]") {
  for (const char* key : {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size",
                          "max_position_embeddings", "rms_norm_eps", "model_type"}) {
    json config = llama_json();
    config.erase(key);
    INFO(key);
    CHECK(contains(read_error(config), std::string("config.json: ") + key + " is missing"));
  }
  CHECK(read_error(with("hidden_size", 0)) == "config.json: hidden_size = 0 is outside 1..268435456");
  CHECK(read_error(with("num_hidden_layers", std::int64_t{1} << 60)) ==
        "config.json: num_hidden_layers = 1152921504606846976 is outside 1..4096");
  CHECK(read_error(with("vocab_size", "96")) == "config.json: vocab_size = \"96\" is not a 64-bit integer");
  CHECK(read_error(with("vocab_size", UINT64_MAX)) ==
        "config.json: vocab_size = 18446744073709551615 is not a 64-bit integer");
  CHECK(read_error(with("rms_norm_eps", -1)) == "config.json: rms_norm_eps = -1 must be above 0");
  CHECK(read_error(with("rope_theta", 0)) == "config.json: rope_theta = 0 must be above 0");
  CHECK(read_error(with("num_key_value_heads", 3)) ==
        "config.json: num_key_value_heads = 3 does not divide num_attention_heads = 4");
  CHECK(read_error(with("hidden_act", "swishh")) ==
        "config.json: hidden_act = 'swishh' is not supported; supported: silu, gelu, gelu_new, gelu_pytorch_tanh, "
        "relu, relu2");
  CHECK(read_error(with("tie_word_embeddings", 1)) == "config.json: tie_word_embeddings = 1 must be true or false");
  CHECK(contains(read_error(with("model_type", "bart")), "config.json: model_type = 'bart' is not supported"));
}

TEST_CASE("hf config: rope blocks that cannot be understood are refused", "[checkpoint][hf][errors]") {
  CHECK(
      contains(read_error(with_rope({{"rope_type", "spiral"}, {"factor", 2}})),
               "config.json: rope_scaling.rope_type = 'spiral' is not supported; supported: default (mrope), linear"));
  CHECK(read_error(with_rope({{"rope_type", "linear"}, {"type", "yarn"}, {"factor", 2}})) ==
        "config.json: rope_scaling.rope_type = 'linear' contradicts type = 'yarn'");
  CHECK(
      contains(read_error(with_rope({{"factor", 2}})), "rope_scaling.rope_type is missing although there is a factor"));
  CHECK(contains(read_error(with_rope({{"rope_type", "linear"}})), "rope_scaling.factor is missing"));
  CHECK(read_error(with_rope({{"rope_type", "linear"}, {"factor", 0.5}})) ==
        "config.json: rope_scaling.factor = 0.5 must be at least 1");
  CHECK(contains(read_error(with_rope({{"rope_type", "yarn"}, {"factor", 4}})),
                 "rope_scaling.original_max_position_embeddings is missing; rope_type yarn needs"));
  CHECK(contains(read_error(with_rope({{"rope_type", "llama3"}, {"factor", 4}})),
                 "rope_scaling.original_max_position_embeddings is missing"));
  CHECK(contains(
      read_error(with_rope({{"rope_type", "llama3"}, {"factor", 4}, {"original_max_position_embeddings", 32}})),
      "rope_scaling.low_freq_factor is missing"));
  CHECK(contains(read_error(with_rope({{"spiral_attention", {{"rope_type", "default"}}}})),
                 "rope_scaling.spiral_attention is an unknown layer type"));
  CHECK(contains(read_error(with_rope({{"rope_type", "longrope"},
                                       {"factor", 4},
                                       {"original_max_position_embeddings", 32},
                                       {"short_factor", {1, 2}},
                                       {"long_factor", {1, 2}}})),
                 "scaling longrope: short_factor has 2 entries; rotary_dim = 16 needs 8"));
  json both = with_rope({{"rope_type", "linear"}, {"factor", 2}});
  both["rope_parameters"] = {{"rope_type", "linear"}, {"factor", 4}};
  CHECK(contains(read_error(both), "rope_parameters and rope_scaling differ"));
  CHECK(contains(read_error(with("rope_scaling", "linear")), "rope_scaling is not an object"));
}

TEST_CASE("hf config: what a llama would silently ignore is refused", "[checkpoint][hf][errors]") {
  for (const char* key : {"qk_norm", "rope_interleaved"}) {
    CHECK(contains(read_error(with(key, true)), std::string(key) + " is set, but the decoder of model_type 'llama'"));
    CHECK(read_error(with(key, false)) == "ModelError");
  }
  CHECK(contains(read_error(with("sliding_window", 4096)), "sliding_window is set"));
  CHECK(contains(read_error(with("no_rope_layers", json::array({1, 0}))), "no_rope_layers is set"));
  CHECK(read_error(with("no_rope_layers", json::array())) == "ModelError");
  CHECK(read_error(with("architectures", json::array({"LlamaForCausalLM"}))) == "ModelError");
  CHECK(read_error(with("architectures", json::array({"MistralForCausalLM"}))) ==
        "config.json: architectures = MistralForCausalLM does not belong to model_type 'llama', whose class is "
        "LlamaForCausalLM");
}

TEST_CASE("hf config: a missing or broken file says so", "[checkpoint][hf][errors]") {
  const test::TemporaryFolder folder("hf");
  CHECK(contains(model_error([&] { read_config(folder.path() + "/nothing.json"); }), "cannot read"));
  CHECK(contains(model_error([&] { read_config(folder.write("config.json", "{")); }), "is not valid JSON"));
  CHECK(contains(model_error([&] { read_config(folder.write("config.json", "[1]")); }), "is not a JSON object"));
  CHECK(contains(model_error([&] { read_config(folder.write("config.json", R"({"a":1,"a":2})")); }), "key 'a' twice"));
  CHECK(contains(model_error([&] { read_config(folder.write("config.json", "")); }), "is not valid JSON"));
}

}  // namespace
}  // namespace fathom::checkpoint
