// Every tiny checkpoint that the reference's numbers exist for, through the whole program: files, decoder, engine.

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "harness/engine/probe.h"
#include "tests/engine/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/shared_dir.h"
#include "tests/support/temp_folder.h"

using namespace fathom;          // NOLINT
using namespace fathom::engine;  // NOLINT

namespace {

/// Fixtures whose architecture this build cannot load.
const std::set<std::string> kNotLoadable = {};

/// Largest difference of a logit of the last position.
double check_numbers(const test::Fixture& fixture) {
  const ProbeResult probe = probe_logits(fixture.weights, fixture.checkpoint->config(), fixture.options, fixture.ids);
  const double difference = test::last_logit_difference(fixture, probe.last_logits);
  CHECK(difference < fixture.tolerance);
  double nll = 0;
  for (const double logprob : probe.next_logprobs) nll -= logprob;
  CHECK(std::fabs(nll - fixture.expected["nll_sum"].get<double>()) < 1e-3);
  for (const auto& row : fixture.expected["positions"]) {
    const auto position = row["position"].get<std::size_t>();
    CHECK(probe.argmax[position] == row["argmax"].get<TokenId>());
    if (position + 1 >= fixture.ids.size() || row["logprob_next"].is_null()) continue;
    CHECK(std::fabs(probe.next_logprobs[position] - row["logprob_next"].get<double>()) < fixture.tolerance);
  }
  return difference;
}

/// Where cached decoding of the reference depends on the history, the consistent mode equals its recomputation, and the
/// mode hf its cache.
void check_greedy(const test::Fixture& fixture) {
  const auto& expected = fixture.expected;
  const auto cached = expected["greedy"].get<TokenIds>();
  const auto recomputed = expected.value("greedy_no_cache", cached);
  const auto consistent = fixture.with_policy(rope::LengthPolicy::kConsistent);
  const auto hf = fixture.with_policy(rope::LengthPolicy::kHf);
  CHECK(fixture.greedy(consistent, fixture.ids, recomputed.size()) == recomputed);
  CHECK(fixture.greedy(hf, fixture.ids, cached.size()) == cached);
  if (!expected.contains("crossing")) return;
  const auto& crossing = expected["crossing"];
  const TokenIds prompt(fixture.ids.begin(), fixture.ids.begin() + crossing["prompt_len"].get<std::int64_t>());
  const auto crossing_cached = crossing["greedy_cache"].get<TokenIds>();
  const auto crossing_recomputed = crossing["greedy_no_cache"].get<TokenIds>();
  CHECK(fixture.greedy(hf, prompt, crossing_cached.size()) == crossing_cached);
  CHECK(fixture.greedy(consistent, prompt, crossing_recomputed.size()) == crossing_recomputed);
}

/// Two requests at once, one of them the beginning of the other, must not change what one alone gets.
void check_batching(const test::Fixture& fixture) {
  std::vector<lm::Request> requests(2);
  const auto half = static_cast<std::ptrdiff_t>(fixture.ids.size() / 2);
  requests[0].prompt = fixture.ids;
  requests[1].prompt = TokenIds(fixture.ids.begin(), fixture.ids.begin() + half);
  for (lm::Request& request : requests) request.max_new_tokens = 4;
  const auto& config = fixture.checkpoint->config();
  const auto together = make_language_model(fixture.weights, config, fixture.options)->complete(requests);
  for (std::size_t i = 0; i < requests.size(); ++i)
    CHECK(together[i].ids == fixture.greedy(config, requests[i].prompt, 4));
}

}  // namespace

TEST_CASE("architectures: every tiny checkpoint gives the reference's logits and tokens", "[engine][parity]") {
  FATHOM_NEEDS_SHARED("fixtures/tiny/INDEX.md");
  std::string table;
  const std::string root = test::shared_path("fixtures/tiny/");
  for (const std::string& name : test::fixture_names(root)) {
    INFO("fixture " << name);
    if (kNotLoadable.count(name) != 0) {
      CHECK_THROWS_AS(test::Fixture(root + name), ModelError);
      table += name + ": not loadable\n";
      continue;
    }
    try {
      const test::Fixture fixture(root + name);
      const double difference = check_numbers(fixture);
      check_greedy(fixture);
      check_batching(fixture);
      char line[96];
      std::snprintf(line, sizeof line, "%s: %.1e\n", name.c_str(), difference);
      table += line;
    } catch (const Error& error) {
      FAIL_CHECK(error.what());
    }
  }
  WARN("largest difference of a last logit\n" << table);
}

TEST_CASE("architectures: checkpoints that come with the tests", "[engine][parity]") {
  const std::string root = std::string(FATHOM_TEST_DIR) + "/engine/checkpoints/";
  const auto names = test::fixture_names(root);
  CHECK(names == std::vector<std::string>{"bloom", "bloom_residual", "gemma", "gemma2", "glm", "gpt_oss", "llama4_yarn",
                                          "minimax_window", "olmo3", "opt_350m", "qwen2_moe", "stablelm_heads",
                                          "t5_own_head"});
  for (const std::string& name : names) {
    INFO("fixture " << name);
    const test::Fixture fixture(root + name);
    check_numbers(fixture);
    check_greedy(fixture);
    check_batching(fixture);
  }
}

TEST_CASE("architectures: the configuration in version 4's spelling gives the same logits", "[engine][parity]") {
  FATHOM_NEEDS_SHARED("fixtures/tiny/INDEX.md");
  const std::string root = test::shared_path("fixtures/tiny/");
  int run = 0;
  for (const std::string& name : test::fixture_names(root)) {
    const std::string folder = root + name;
    if (!std::filesystem::exists(folder + "/config_v4.json")) continue;
    INFO("fixture " << name);
    const test::TempFolder copy;
    for (const char* file : {"model.safetensors", "expected.json"})
      std::filesystem::create_symlink(std::filesystem::absolute(folder + "/" + file), copy.file(file));
    std::filesystem::create_symlink(std::filesystem::absolute(folder + "/config_v4.json"), copy.file("config.json"));
    try {
      check_numbers(test::Fixture(copy.path().string()));
    } catch (const Error& error) {
      FAIL_CHECK(error.what());
    }
    ++run;
  }
  CHECK(run >= 38);
}
