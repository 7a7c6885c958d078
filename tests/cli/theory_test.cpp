// The theory command as a user calls it.

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/process.h"

using fathom::test::contains;
using fathom::test::ProcessResult;
using fathom::test::Workspace;
using nlohmann::json;

namespace {

json theory_of(const std::vector<std::string>& args) {
  std::vector<std::string> all = {"theory", "--json"};
  all.insert(all.end(), args.begin(), args.end());
  const ProcessResult result = Workspace().run(all);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return json::parse(result.out);
}

}  // namespace

TEST_CASE("cli: theory of a frequency list gives the published figures", "[cli][theory]") {
  const json llama2 = theory_of({"--base", "10000", "--trained", "4096"}).at("groups").at(0).at("rotation");
  CHECK(llama2.at("wrapped_trained") == 46);
  CHECK(llama2.at("critical_dimension") == 92);
  CHECK(llama2.at("first_negative_advantage") == 1707);
  CHECK(llama2.at("unseen_channels") == 0);
  const json llama31 = theory_of(
      {"--base", "500000", "--trained", "8192", "--length", "131072", "--scaling", "llama3", "--factor", "8"});
  const json& rotation = llama31.at("groups").at(0).at("rotation");
  CHECK(rotation.at("scaling") == "llama3");
  CHECK(rotation.at("wrapped_tested") == 39);
  CHECK(rotation.at("first_negative_advantage") == 85133);
  CHECK(rotation.at("extrapolation_limit").is_null());
  CHECK_FALSE(llama31.at("warnings").empty());
}

TEST_CASE("cli: theory keeps the pretrained base apart from the one in force", "[cli][theory]") {
  const json tuned =
      theory_of({"--base", "1000000", "--pretrained-base", "10000", "--trained", "4096", "--length", "8192"})
          .at("groups")
          .at(0)
          .at("rotation");
  CHECK(tuned.at("critical_dimension") == 92);
  CHECK_THAT(tuned.at("extrapolation_limit").get<double>(), Catch::Matchers::WithinAbs(129027, 0.5));
  CHECK_THAT(tuned.at("critical_base").get<double>(), Catch::Matchers::WithinAbs(26784, 0.5));
}

TEST_CASE("cli: theory says where biases stop telling distances apart", "[cli][theory]") {
  const json alibi =
      theory_of({"--scheme", "alibi", "--heads", "32", "--length", "65537"}).at("groups").at(0).at("alibi");
  CHECK(static_cast<int>(alibi.at("horizon").get<double>()) == 1768);
  CHECK(alibi.at("penalty_at_end") == 256);
  CHECK(theory_of({"--scheme", "t5"}).at("groups").at(0).at("resolution_end") == 113);
  CHECK(theory_of({"--scheme", "inkling", "--extent", "512"}).at("groups").at(0).at("resolution_end") == 512);
  CHECK_FALSE(theory_of({"--scheme", "nope"}).at("groups").at(0).contains("rotation"));
}

TEST_CASE("cli: theory of a config.json groups its layers and draws the curve", "[cli][theory]") {
  const Workspace work;
  work.write("config.json",
             R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 100, "rms_norm_eps": 1e-5,
    "max_position_embeddings": 2048, "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": false})");
  const ProcessResult json_out = work.run({"theory", "config.json", "--json", "--curve"});
  REQUIRE(json_out.exit_code == 0);
  const json theory = json::parse(json_out.out);
  CHECK(theory.at("tested_length") == 2048);
  REQUIRE(theory.at("groups").size() == 1);
  CHECK(theory.at("groups").at(0).at("layers") == json::array({0, 1, 2}));
  const json& curve = theory.at("groups").at(0).at("rotation").at("curve");
  CHECK(curve.at(0).at("expected_score") == 1.0);
  CHECK(curve.back().at("distance") == 1024);
  const ProcessResult text = work.run({"theory", "config.json", "--length", "8192"});
  CHECK(contains(text.out, "layers 0-2: rope"));
  CHECK(contains(text.out, "wrapped"));
  const ProcessResult raised = work.run({"theory", "config.json", "--json", "--base", "500000"});
  CHECK(json::parse(raised.out).at("groups").at(0).at("rotation").at("base") == 500000.0);
}

TEST_CASE("cli: theory refuses what it cannot mean", "[cli][theory][errors]") {
  const Workspace work;
  work.write("config.json", "{}");
  const auto message = [&work](const std::vector<std::string>& args) {
    const ProcessResult result = work.run(args);
    CHECK(result.exit_code == 2);
    return result.err;
  };
  CHECK(contains(message({"theory", "config.json", "--heads", "4"}), "--heads describes a scheme without a model"));
  CHECK(contains(message({"theory", "--rotary-dim", "7"}), "--rotary-dim 7 must be even"));
  CHECK(contains(message({"theory", "--rotary-dim", "128", "--head-dim", "64"}), "at most --head-dim 64"));
  CHECK(contains(message({"theory", "--base", "0"}), "--base 0 is not a number in"));
  CHECK(contains(message({"theory", "--scheme", "alibi", "--epsilon", "2"}), "--epsilon 2 is not a number in"));
  CHECK(contains(message({"theory", "--scaling", "yran"}), "did you mean 'yarn'"));
  CHECK(contains(message({"theory", "--scheme", "t5", "--max-distance", "8"}), "t5: max_distance = 8"));
}
