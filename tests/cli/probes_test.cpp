// The machine-readable shapes other programs rely on.

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/shared_dir.h"

using fathom::test::ProcessResult;
using fathom::test::Workspace;
using nlohmann::json;

namespace {

json json_of(const ProcessResult& result) {
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return json::parse(result.out);
}

}  // namespace

TEST_CASE("cli: list prints every registry as text and JSON", "[cli]") {
  const Workspace work;
  for (const std::string what :
       {"tasks", "positions", "scalings", "models", "presets", "scorers", "reports", "options"}) {
    CHECK_FALSE(json_of(work.run({"list", what, "--json"})).empty());
    CHECK(work.run({"list", what}).exit_code == 0);
  }
  CHECK(work.run({"list", "nothing"}).exit_code == 2);
}

TEST_CASE("cli: configs/KEYS.md is what the program prints", "[cli][docs]") {
  std::ifstream file(std::string(FATHOM_TEST_DIR) + "/../configs/KEYS.md");
  const std::string written((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  CHECK(Workspace().run({"list", "options", "--format", "markdown"}).out == written);
}

TEST_CASE("cli: doctor names versions, speed and what to improve", "[cli]") {
  const json facts = json_of(Workspace().run({"doctor", "--json"}));
  CHECK(facts.at("matmul_float32_gflops").get<double>() > 0);
  CHECK(facts.contains("advice"));
  CHECK(facts.contains("versions"));
}

TEST_CASE("cli: inspect works on a bare config.json and follows --set", "[cli][inspect]") {
  const Workspace work;
  work.write("config.json",
             R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 100, "rms_norm_eps": 1e-5,
    "max_position_embeddings": 2048, "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": false})");
  const json plain = json_of(work.run({"inspect", "config.json", "--json"}));
  CHECK(plain.at("claimed_context") == 2048);
  CHECK(plain.at("n_layers") == 2);
  const json& layer = plain.at("layers").at(0);
  CHECK(layer.at("position") == "rope");
  CHECK(layer.at("layout") == "split_half");
  CHECK(layer.at("inv_freq").size() == 8);
  CHECK(layer.at("inv_freq").at(0) == 1.0);
  const json linear =
      json_of(work.run({"inspect", "config.json", "--json", "--set", "scaling=linear", "--set", "scaling.factor=4"}));
  CHECK(linear.at("layers").at(0).at("inv_freq").at(0) == 0.25);
  CHECK(work.run({"inspect", "config.json", "--set", "scaling=linear", "--set", "scaling.fator=4"}).exit_code == 2);
}

TEST_CASE("cli: --set on a model with two rotations acts on its global layers, or on those named", "[cli][inspect]") {
  const Workspace work;
  const auto thetas = [&](const std::vector<std::string>& settings) {
    std::vector<std::string> arguments = {"inspect", "Gemma-3-1B", "--json"};
    for (const std::string& setting : settings) {
      arguments.emplace_back("--set");
      arguments.push_back(setting);
    }
    const json layers = json_of(work.run(arguments)).at("layers");
    return std::pair(layers.at(0).at("inv_freq").back().get<double>(),
                     layers.at(5).at("inv_freq").back().get<double>());
  };
  const auto [local, global] = thetas({});
  CHECK(thetas({"scaling=linear", "scaling.factor=4"}) == std::pair(local, global / 4));
  CHECK(thetas({"scaling=linear", "scaling.factor=4", "rope.layers=local"}) == std::pair(local / 4, global));
  CHECK(thetas({"scaling=linear", "scaling.factor=4", "rope.layers=all"}) == std::pair(local / 4, global / 4));
  CHECK(thetas({"rope.base=10000"}) == std::pair(local, local));
  const auto error = [&](const std::string& model, const std::string& setting) {
    const ProcessResult result = work.run({"inspect", model, "--set", setting});
    CHECK(result.exit_code == 2);
    return result.err;
  };
  CHECK(error("Gemma-3-1B", "rope.layers=local").find("rope.layers changes nothing") != std::string::npos);
  CHECK(error("Gemma-3-1B", "rope.layers=inner").find("must be global, local or all") != std::string::npos);
  CHECK(error("Llama-3.1-8B", "rope.layers=local").find("has one rotation for all its layers") != std::string::npos);
}

TEST_CASE("cli: inspect shows the tables' format", "[cli][inspect]") {
  const Workspace work;
  const auto format = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"inspect", "Gemma-3-1B", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return json_of(work.run(arguments)).at("layers").at(0).at("parameters").at("table_dtype");
  };
  CHECK(format({}) == "float32");
  CHECK(format({"--set", "rope.table_dtype=bf16"}) == "bf16");
  CHECK(work.run({"inspect", "Gemma-3-1B", "--set", "rope.table_dtype=bf17"}).exit_code == 2);
}

TEST_CASE("cli: inspect names the folder of a config.json given without one", "[cli][inspect]") {
  const Workspace work;
  work.write("config.json", R"({"model_type": "llama", "head_dim": 16, "rope_theta": 10000.0})");
  const json bare = json_of(work.run({"inspect", "config.json", "--json"}));
  CHECK_FALSE(bare.at("name").get<std::string>().empty());
  CHECK(bare.at("claimed_context").is_null());
  CHECK(bare.at("layers").at(0).at("n_heads").is_null());
  CHECK(bare.at("warnings").size() == 2);
}

TEST_CASE("cli: inspect shows positions of a model that logits refuses to run", "[cli][inspect]") {
  const Workspace work;
  work.write("config.json", R"({"model_type": "umt5", "d_model": 64, "num_layers": 2, "num_heads": 4})");
  const json shown = json_of(work.run({"inspect", ".", "--json"}));
  CHECK(shown.at("layers").at(1).at("position") == "t5");
  const ProcessResult refused = work.run({"logits", ".", "--ids", "1,2"});
  CHECK(refused.exit_code == 1);
  CHECK(refused.err.find("model_type = 'umt5' cannot be run by this build") != std::string::npos);
}

TEST_CASE("cli: presets are listed and inspected by name", "[cli][inspect]") {
  const Workspace work;
  CHECK(json_of(work.run({"list", "presets", "--json"})).size() == 63);
  const json llama = json_of(work.run({"inspect", "Llama-3.1-8B", "--json"}));
  CHECK(llama.at("claimed_context") == 131072);
  CHECK(llama.at("trained_context") == 8192);
  CHECK(llama.at("layers").at(0).at("parameters").at("scaling") == "llama3");
  const ProcessResult text = work.run({"inspect", "Gemma-3-4B"});
  CHECK(text.exit_code == 0);
  CHECK(text.out.find("layers 5, 11, 17, 23, 29 (5 of 34)") != std::string::npos);
  const ProcessResult unknown = work.run({"inspect", "Llama-3.1-9B"});
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.err.find("did you mean 'Llama-3.1-8B'?") != std::string::npos);
}

TEST_CASE("cli: logits of a tiny checkpoint equal the reference", "[cli][logits]") {
  FATHOM_NEEDS_SHARED("fixtures/tiny/llama/expected.json");
  const json expected = json::parse(std::ifstream(fathom::test::shared_path("fixtures/tiny/llama/expected.json")));
  std::string ids;
  for (const int id : expected.at("input_ids")) ids += (ids.empty() ? "" : ",") + std::to_string(id);
  const json got = json_of(Workspace().run({"logits", fathom::test::shared_path("fixtures/tiny/llama"), "--ids", ids,
                                            "--full", "--greedy", "12", "--json"}));
  double worst = 0;
  for (std::size_t i = 0; i < expected.at("logits_last").size(); ++i) {
    worst =
        std::max(worst, std::abs(expected.at("logits_last")[i].get<double>() - got.at("logits_last")[i].get<double>()));
  }
  CHECK(worst < expected.at("tolerance_abs").get<double>());
  CHECK(got.at("greedy") == expected.at("greedy"));
  double nll = 0;
  for (const double logprob : got.at("next_logprob")) nll -= logprob;
  CHECK(std::abs(nll - expected.at("nll_sum").get<double>()) < 1e-3);
}
