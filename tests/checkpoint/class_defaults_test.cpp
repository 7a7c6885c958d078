// What a class takes where its file is silent, and keys that it ignores: as transformers' classes have it.

#include <nlohmann/json.hpp>
#include <string>

#include "harness/checkpoint/architecture.h"
#include "tests/checkpoint/config_builders.h"
#include "tests/checkpoint/file_builders.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

namespace fathom::checkpoint {
namespace {

using nlohmann::json;
using test::contains;
using test::frequencies;
using test::model_error;
using test::position_config;
using test::resolve;
using test::resolve_error;
using test::with_block;

/// Configuration of a checkpoint that comes with the tests.
json stored_config(const std::string& name) {
  return test::read_json_file(std::string(FATHOM_TEST_DIR) + "/engine/checkpoints/" + name + "/config.json");
}

DecoderConfig decoder(const json& config) {
  const JsonObject object = JsonObject::parse(config.dump(), "config.json", 16);
  return architectures().at(config["model_type"].get<std::string>()).config_from_json(object);
}

std::string decoder_error(const json& config) {
  return model_error([&] { decoder(config); });
}

TEST_CASE("class defaults: theta", "[checkpoint][hf]") {
  for (const auto& [model_type, theta] : {std::pair("cohere", 5e5),
                                          {"exaone", 5e5},
                                          {"mixtral", 1e6},
                                          {"phimoe", 1e6},
                                          {"starcoder2", 1e4},
                                          {"cohere2", 1e4}}) {
    INFO(model_type);
    CHECK(resolve(position_config(model_type)).layers[0].position.rope_base == theta);
  }
}

TEST_CASE("class defaults: a gpt-oss without a rope block has the scaling of its class", "[checkpoint][hf]") {
  json config = position_config("gpt_oss");
  config["rope_theta"] = 1000.0;
  const json with_null = with_block(config, nullptr);
  for (const json& silent : {config, with_null}) {
    const PositionSpec position = resolve(silent).layers[0].position;
    CHECK(position.scaling.method == "yarn");
    CHECK(position.scaling.factor == 32);
    CHECK(position.scaling.original_context == 4096);
    CHECK(position.scaling.options.values().at("truncate") == "off");
    CHECK(position.rope_base == 1000);
  }
  const json plain = with_block(config, {{"rope_type", "default"}});
  CHECK(resolve(plain).layers[0].position.scaling.method == "none");
  CHECK(resolve(position_config("ministral3")).layers[0].position.rope_base == 1e6);
  CHECK(resolve(position_config("apertus")).layers[0].position.scaling.method == "llama3");
}

TEST_CASE("class defaults: an MPT without attn_config has ALiBi", "[checkpoint][hf]") {
  CHECK(resolve(position_config("mpt")).layers[0].position.kind == "alibi");
  json config = position_config("mpt");
  config["attn_config"] = {{"clip_qkv", 0.8}};
  CHECK(resolve(config).layers[0].position.kind == "alibi");
  config["attn_config"] = {{"alibi", false}};
  CHECK(resolve(config).layers[0].position.kind == "learned");
}

TEST_CASE("class defaults: MiniMax begins with softmax, and a window is its softmax layers'", "[checkpoint][hf]") {
  json config = stored_config("minimax_window");
  config.erase("layer_types");
  for (const json& source : {config, stored_config("minimax_window")}) {
    const DecoderConfig read = decoder(source);
    REQUIRE(read.n_layers() == 3);
    CHECK(read.layers[0].softmax_attention);
    CHECK_FALSE(read.layers[1].softmax_attention);
    CHECK(read.layers[2].softmax_attention);
    CHECK(read.layers[0].window == 16);
    CHECK(resolve(source).layers[0].window == 16);  // as `fathom inspect` shows it
    CHECK_FALSE(read.layers[1].window);
  }
}

TEST_CASE("class: what the class fixes may be said, and nothing else", "[checkpoint][hf][errors]") {
  json config = position_config("cohere2");
  config["position_embedding_type"] = "rope_gptj";
  CHECK(resolve_error(config) == "no ModelError");
  config["position_embedding_type"] = "alibi";
  CHECK(resolve_error(config) == "position_embedding_type = 'alibi' is not supported; only rope_gptj is");
}

TEST_CASE("class: rope_interleave is DeepSeek-V3's, not V2's", "[checkpoint][hf]") {
  const auto layout = [](const char* model_type) {
    json config = position_config(model_type);
    config["rope_interleave"] = false;
    return resolve(config).layers[0].position.layout;
  };
  CHECK(layout("deepseek_v2") == RopeLayout::kInterleaved);
  CHECK(layout("deepseek_v3") == RopeLayout::kSplitHalf);
  CHECK(contains(resolve_error(with_block(position_config("deepseek_v3"),
                                          {{"rope_type", "linear"}, {"factor", 4}, {"mscale_all_dim", 1}})),
                 "mscale_all_dim is supported with rope_type yarn only, not linear"));
}

TEST_CASE("class: a share of the head is refused where transformers rotates all of it", "[checkpoint][hf][errors]") {
  json config = stored_config("gemma2");
  config["partial_rotary_factor"] = 0.5;
  CHECK(contains(decoder_error(config), "partial_rotary_factor rotates"));
  CHECK(contains(decoder_error(config), "transformers rotates whole heads of model_type 'gemma2'"));
  config["partial_rotary_factor"] = 1.0;
  CHECK(decoder_error(config) == "no ModelError");
}

TEST_CASE("class: a Llama 4 whose layers all rotate has no use for the temperature's keys", "[checkpoint][hf]") {
  json config = stored_config("llama4_yarn");
  CHECK(config["attn_temperature_tuning"] == true);
  const DecoderConfig read = decoder(config);
  CHECK(read.layers[0].position.norm_after_rotation);
  CHECK(resolve_frequencies(read.layers[0].position, 64).attention_factor == 1);
  config["use_qk_norm"] = false;
  CHECK(resolve_frequencies(decoder(config).layers[0].position, 64).attention_factor > 1.1);
}

TEST_CASE("class: files written without the head, or under a first name", "[checkpoint][hf]") {
  json config = stored_config("bloom");
  config["architectures"] = {"BloomModel"};
  CHECK(decoder_error(config) == "no ModelError");
  config["architectures"] = {"BloomForTokenClassification"};
  CHECK(contains(decoder_error(config), "whose class is BloomForCausalLM"));
  json t5 = stored_config("t5_own_head");
  t5["architectures"] = {"T5WithLMHeadModel"};
  CHECK(decoder_error(t5) == "no ModelError");
}

TEST_CASE("class: norms behind the sums and an embedding of another width (OPT-350m)", "[checkpoint][hf]") {
  json config = stored_config("opt_350m");
  const DecoderConfig read = decoder(config);
  CHECK(read.norm_after_sum);
  CHECK_FALSE(read.pre_norm);
  CHECK_FALSE(read.final_norm);
  CHECK(read.d_embedding == 16);
  config["do_layer_norm_before"] = true;
  CHECK(decoder(config).final_norm);
  config["_remove_final_layer_norm"] = true;
  CHECK_FALSE(decoder(config).final_norm);
}

TEST_CASE("class: what would be computed otherwise is refused by name", "[checkpoint][hf][errors]") {
  json bloom = stored_config("bloom");
  bloom["slow_but_exact"] = true;
  CHECK(decoder_error(bloom) == "no ModelError");
  bloom["pretraining_tp"] = 2;
  CHECK(contains(decoder_error(bloom), "slow_but_exact = true is not supported"));
  CHECK(decoder(stored_config("bloom_residual")).residual_after_norm);
}

std::string kinds(const json& config) {
  std::string out;
  for (const LayerSpec& layer : resolve(config).layers) out += layer.window ? 'w' : 'f';
  return out;
}

json windowed(const char* model_type) {
  json config = position_config(model_type);
  config["sliding_window"] = 64;
  return config;
}

TEST_CASE("class: which layers have a window where no list says it", "[checkpoint][hf]") {
  json moe = windowed("qwen2_moe");
  CHECK(kinds(moe) == "ffff");
  moe["use_sliding_window"] = true;
  moe["max_window_layers"] = 3;
  CHECK(kinds(moe) == "wfwf");
  json smollm3 = windowed("smollm3");
  smollm3["use_sliding_window"] = true;
  smollm3["no_rope_layers"] = {1, 0, 1, 0};
  CHECK(kinds(smollm3) == "fwfw");
  json qwen3_moe = windowed("qwen3_moe");
  CHECK(kinds(qwen3_moe) == "ffff");
  qwen3_moe["use_sliding_window"] = true;
  CHECK(kinds(qwen3_moe) == "wwww");
}

TEST_CASE("class: a window switched off by a key that the class ignores is refused", "[checkpoint][hf][errors]") {
  for (const char* model_type : {"mistral", "mixtral", "phi3", "starcoder2", "ministral3", "gemma2", "gemma3_text"}) {
    json config = windowed(model_type);
    config["use_sliding_window"] = false;
    INFO(model_type);
    CHECK(contains(resolve_error(config), "use_sliding_window = false beside sliding_window"));
  }
  json gemma = windowed("gemma2");
  gemma["sliding_window"] = nullptr;
  gemma["use_sliding_window"] = false;
  CHECK(kinds(gemma) == "ffff");
}

TEST_CASE("class: layer_types is refused where the class goes by its own rule", "[checkpoint][hf][errors]") {
  json config = windowed("mixtral");
  config["layer_types"] = {"sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention"};
  CHECK(kinds(config) == "wwww");
  config["layer_types"][1] = "full_attention";
  CHECK(contains(resolve_error(config), "layer_types says something else than model_type 'mixtral' does"));
  config["model_type"] = "mistral";
  CHECK(kinds(config) == "wfww");
}

TEST_CASE("class: soft-caps of Gemma 2 are on unless the file says null", "[checkpoint][hf]") {
  json config = stored_config("gemma2");
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping"}) config.erase(key);
  CHECK(decoder(config).layers[0].softcap == 50);
  CHECK(decoder(config).logit_softcap == 30);
  config["attn_logit_softcapping"] = nullptr;
  config["final_logit_softcapping"] = nullptr;
  CHECK(decoder(config).layers[0].softcap == 0);
  CHECK(decoder(config).logit_softcap == 0);
}

TEST_CASE("class: Gemma's gelu is the approximation", "[checkpoint][hf]") {
  json config = stored_config("gemma2");
  config["model_type"] = "gemma";
  config["architectures"] = {"GemmaForCausalLM"};
  for (const char* key : {"query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping",
                          "hidden_activation", "layer_types", "sliding_window", "_sliding_window_pattern"})
    config.erase(key);
  config["hidden_act"] = "gelu";
  CHECK(decoder(config).activation == Activation::kGeluTanh);
  config["hidden_activation"] = "gelu_pytorch_tanh";
  CHECK(decoder(config).activation == Activation::kGeluTanh);
  config["hidden_activation"] = "relu";
  CHECK(contains(decoder_error(config), "hidden_activation = 'relu' contradicts hidden_act"));
}

TEST_CASE("class: a period of windows that the class does not read is refused", "[checkpoint][hf][errors]") {
  json config = stored_config("gemma2");
  config.erase("layer_types");
  config["sliding_window_pattern"] = 2;
  CHECK(decoder_error(config) == "no ModelError");
  config["sliding_window_pattern"] = 3;
  CHECK(contains(decoder_error(config), "sliding_window_pattern is not what transformers' class goes by, which has 2"));
}

TEST_CASE("class: blocks of models with two bases", "[checkpoint][hf][errors]") {
  const json linear = {{"rope_type", "linear"}, {"factor", 8}};
  json config = with_block(position_config("gemma3_text"), linear);
  config["sliding_window_pattern"] = 2;
  CHECK(resolve(config).layers[1].position.scaling.method == "linear");
  CHECK(resolve(config).layers[0].position.scaling.method == "none");
  config["rope_scaling"] = {{"type", "linear"}, {"factor", 8}};
  CHECK(contains(resolve_error(config), "call it rope_type"));
  json flat = position_config("gemma3_text");
  flat["sliding_window_pattern"] = 2;
  flat["rope_parameters"] = linear;
  CHECK(contains(resolve_error(flat), "rope_parameters must hold a block for full_attention"));
  json yarn = with_block(position_config("gemma3_text"),
                         {{"rope_type", "yarn"}, {"factor", 8}, {"original_max_position_embeddings", 512}});
  yarn["original_max_position_embeddings"] = 256;
  yarn["sliding_window_pattern"] = 2;
  CHECK(resolve(yarn).layers[1].position.scaling.original_context == 512);
}

TEST_CASE("class: Phi-3's original context stands outside the block", "[checkpoint][hf]") {
  const json block = {{"type", "longrope"},
                      {"short_factor", json::array({1, 1})},
                      {"long_factor", json::array({2, 2})},
                      {"original_max_position_embeddings", 32}};
  json config = with_block(position_config("phi3", 4), block);
  config["max_position_embeddings"] = 8192;
  const DecoderConfig inside = resolve(config);
  CHECK(inside.layers[0].position.scaling.original_context == 4096);
  CHECK(contains(inside.warnings.at(0), "original_max_position_embeddings = 4096 is used, not the 32 inside"));
  config["original_max_position_embeddings"] = 32;
  CHECK(resolve(config).layers[0].position.scaling.original_context == 32);
}

TEST_CASE("class: keys of one family's rotation are not another's", "[checkpoint][hf]") {
  json stablelm = position_config("stablelm");
  stablelm["rope_pct"] = 0.5;
  CHECK(resolve(stablelm).layers[0].position.rotary_dim == 16);
  stablelm["model_type"] = "stablelm_epoch";
  CHECK(resolve(stablelm).layers[0].position.rotary_dim == 32);
  json llama = with_block(position_config("llama", 4), {{"rope_type", "longrope"},
                                                        {"factor", 4},
                                                        {"original_max_position_embeddings", 1024},
                                                        {"short_factor", json::array({1, 1})},
                                                        {"long_factor", json::array({2, 2})},
                                                        {"short_mscale", 1.5},
                                                        {"long_mscale", 1.5}});
  CHECK(resolve(llama).layers[0].position.scaling.options.values().count("attention_factor") == 0);
  llama["model_type"] = "phimoe";
  CHECK(resolve(llama).layers[0].position.scaling.options.values().at("attention_factor") == "1.5");
}

TEST_CASE("class: a Gemma 3 of several parts has the vocabulary of its class", "[checkpoint][hf]") {
  json config = position_config("gemma3_text");
  config["intermediate_size"] = 64;
  CHECK(decoder(config).vocab_size == 262208);
}

}  // namespace
}  // namespace fathom::checkpoint
