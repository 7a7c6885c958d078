// Keys by which some family changes what it computes: honoured, or refused by name; never passed over in silence.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "harness/checkpoint/architecture.h"
#include "tests/checkpoint/file_builders.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/shared_dir.h"

namespace fathom::checkpoint {
namespace {

using nlohmann::json;
using test::contains;
using test::model_error;

json fixture_config(const std::string& name) {
  return test::read_json_file(test::shared_path("fixtures/tiny/" + name + "/config.json"));
}

DecoderConfig read(const json& config) {
  const JsonObject object = JsonObject::parse(config.dump(), "config.json", 16);
  return architectures().at(config["model_type"].get<std::string>()).config_from_json(object);
}

std::string read_error(const std::string& fixture, const std::string& key, const json& value) {
  json config = fixture_config(fixture);
  const std::size_t dot = key.find('.');
  if (dot == std::string::npos) {
    config[key] = value;
  } else {
    config[key.substr(0, dot)][key.substr(dot + 1)] = value;
  }
  return model_error([&] { read(config); });
}

TEST_CASE("hf config: a key of another family is refused by name in every family", "[checkpoint][hf][errors]") {
  FATHOM_NEEDS_SHARED("fixtures/tiny/INDEX.md");
  int run = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test::shared_path("fixtures/tiny"))) {
    const std::string name = entry.path().filename().string();
    if (!std::filesystem::exists(entry.path() / "config.json")) continue;
    const json config = fixture_config(name);
    if (!architectures().find(config["model_type"].get<std::string>())) continue;
    INFO(name);
    CHECK(model_error([&] { read(config); }) == "no ModelError");
    for (const auto& [key, value] : std::vector<std::pair<std::string, json>>{{"scale_emb", 12},
                                                                              {"scale_depth", 1.4},
                                                                              {"quantization_config", {{"bits", 4}}},
                                                                              {"num_kv_shared_layers", 2},
                                                                              {"use_dynamic_ntk", true},
                                                                              {"attn_output_gate", true}}) {
      CHECK(contains(read_error(name, key, value), key + " is set"));
    }
    ++run;
  }
  CHECK(run >= 40);
}

TEST_CASE("hf config: what a family knows but this build does not do is refused", "[checkpoint][hf][errors]") {
  FATHOM_NEEDS_SHARED("fixtures/tiny/INDEX.md");
  const std::vector<std::tuple<const char*, const char*, json>> cases = {
      {"gpt2", "add_cross_attention", true},
      {"opt", "layer_norm_elementwise_affine", false},
      {"mpt", "attn_config.qk_ln", true},
      {"mpt", "attn_config.alibi", false},
      {"mpt", "no_bias", false},
      {"mpt", "logit_scale", 0.5},
      {"gemma3_text", "use_bidirectional_attention", true},
      {"gemma3_text", "attn_logit_softcapping", 50},
      {"deepseek_v2", "norm_topk_prob", true},
      {"deepseek_v2", "topk_method", "noaux_tc"},
      {"deepseek_v3", "scoring_func", "softmax"},
      {"falcon", "num_ln_in_parallel_attn", 2},
      {"llama", "attn_logit_softcapping", 50},
      {"llama", "final_logit_softcapping", 30},
      {"qwen2", "num_experts", 8},
      {"xlstm", "weight_mode", "fused"},
      {"xlstm", "inference_state_dtype", "bfloat16"},

      {"inkling_text", "shared_expert_sink", false},
      {"qwen3", "hidden_act", "quick_gelu"}};
  for (const auto& [fixture, key, value] : cases) {
    INFO(fixture << " " << key);
    CHECK(contains(read_error(fixture, key, value), std::string(key)));
  }
}

TEST_CASE("hf config: what changes the computation arrives in the decoder", "[checkpoint][hf]") {
  FATHOM_NEEDS_SHARED("fixtures/tiny/INDEX.md");
  const auto changed = [](const char* fixture, const char* key, const json& value) {
    json config = fixture_config(fixture);
    config[key] = value;
    return read(config);
  };
  CHECK(changed("granite", "residual_multiplier", 0.5).residual_multiplier == 0.5);
  CHECK(changed("granite", "logits_scaling", 4).logit_multiplier == 0.25);
  CHECK(changed("granite", "attention_multiplier", 0.5).layers[0].softmax_scale == 0.5);
  CHECK(changed("gemma2", "attn_logit_softcapping", 7).layers[0].softcap == 7);
  CHECK(changed("gemma2", "final_logit_softcapping", 9).logit_softcap == 9);
  CHECK(changed("cohere", "use_qk_norm", true).qk_norm == QkNorm::kPerHeadOwn);
  CHECK(changed("phi", "qk_layernorm", true).qk_norm == QkNorm::kPerHead);
  CHECK_FALSE(changed("gpt_neox", "use_parallel_residual", false).parallel_residual);
  CHECK(changed("stablelm", "use_parallel_residual", true).shared_norm);
  CHECK(changed("gpt_oss", "swiglu_limit", 3).layers[0].moe->clamp == 3);
  CHECK_FALSE(changed("deepseek_v3", "norm_topk_prob", false).layers[1].moe->renormalise);
  CHECK(changed("llama", "tie_word_embeddings", true).tied_head);
  CHECK(changed("mistral_swa", "sliding_window", 5).layers[0].window == 5);
}

}  // namespace
}  // namespace fathom::checkpoint
