// Parity with the reference library's numbers: SmolLM2-135M and Gemma-3-270M.

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/checkpoint/checkpoint.h"
#include "harness/checkpoint/position_override.h"
#include "harness/engine/probe.h"
#include "harness/engine/torch_language_model.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/shared_dir.h"

using namespace fathom;          // NOLINT
using namespace fathom::engine;  // NOLINT

namespace {

TokenIds greedy(const std::shared_ptr<const LoadedWeights>& weights, const checkpoint::DecoderConfig& config,
                const TokenIds& ids, std::size_t n) {
  EngineOptions options;
  options.dtype = "float32";
  lm::Request request;
  request.prompt = ids;
  request.max_new_tokens = static_cast<std::int64_t>(n);
  const auto completion = make_language_model(weights, config, options)->complete({request}).front();
  CHECK(completion.error.empty());
  return completion.ids;
}

/// A model's file somewhere below the folder of fetched models, or nothing.
std::optional<std::string> fetched_model(const std::string& file_name) {
  const char* folder = std::getenv("FATHOM_MODELS");
  if (folder == nullptr || !std::filesystem::is_directory(folder)) return std::nullopt;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().filename() == file_name) return entry.path().string();
  }
  return std::nullopt;
}

/// A run's settings as `--set rope.base=… --set scaling=…` make them.
checkpoint::DecoderConfig config_of_run(const checkpoint::DecoderConfig& declared, const nlohmann::json& run,
                                        rope::LengthPolicy policy) {
  if (!run.contains("override")) return declared;
  const auto& rope = run["override"]["rope_parameters"];
  checkpoint::PositionOverride change;
  change.rope_base = rope["rope_theta"].get<double>();
  const auto type = rope["rope_type"].get<std::string>();
  change.scaling = type == "default" ? "none" : type;
  change.factor = rope.value("factor", 1.0);
  change.length_policy = policy;
  if (type == "dynamic") change.original_context = run["override"]["max_position_embeddings"].get<std::int64_t>();
  if (rope.contains("original_max_position_embeddings"))
    change.original_context = rope["original_max_position_embeddings"].get<std::int64_t>();
  return checkpoint::apply_override(declared, change);
}

void check_parity(const std::string& fixture) {
  const auto expected = test::read_json_file(test::shared_path(fixture));
  const auto file_name = expected["model_file"].get<std::string>();
  const auto path = fetched_model(file_name);
  if (!path) {
    WARN("SKIPPED: needs " << file_name << " below the folder FATHOM_MODELS");
    SUCCEED("skipped");
    return;
  }
  const auto checkpoint = checkpoint::open_checkpoint(*path);
  EngineOptions options;
  options.dtype = "float32";
  const auto weights = load_weights(*checkpoint, options);
  const auto ids = expected["input_ids"].get<TokenIds>();
  for (const auto& item : expected["runs"].items()) {
    const auto& run = item.value();
    INFO("run " << item.key());
    const checkpoint::DecoderConfig config = config_of_run(checkpoint->config(), run, rope::LengthPolicy::kConsistent);
    const ProbeResult probe = probe_logits(weights, config, options, ids);
    double nll = 0;
    for (const double logprob : probe.next_logprobs) nll -= logprob;
    CHECK(std::fabs(nll - run["nll_sum"].get<double>()) < 3e-3);
    for (std::size_t i = 0; i < run["positions"].size(); ++i) {
      const auto position = run["positions"][i].get<std::size_t>();
      CHECK(std::fabs(probe.next_logprobs[position] - run["logprob_next"][i].get<double>()) < 2e-4);
      if (run["argmax_gap"][i].get<double>() > 1e-3) CHECK(probe.argmax[position] == run["argmax"][i].get<TokenId>());
    }
    const auto& last = run["last"];
    for (std::size_t i = 0; i < last["sample_ids"].size(); ++i) {
      const float logit = probe.last_logits[last["sample_ids"][i].get<std::size_t>()];
      CHECK(std::fabs(static_cast<double>(logit) - last["sample_logits"][i].get<double>()) < 5e-4);
    }
    // The reference's cached decoding of dynamic scaling depends on its history, as mode hf's does.
    const auto tokens = run["greedy"].get<TokenIds>();
    const auto cached = config_of_run(checkpoint->config(), run, rope::LengthPolicy::kHf);
    CHECK(greedy(weights, cached, ids, tokens.size()) == tokens);
  }
}

}  // namespace

TEST_CASE("engine parity: SmolLM2 under every scaling of the reference run", "[engine][parity][real]") {
  FATHOM_NEEDS_SHARED("fixtures/real/parity_smollm2.json");
  check_parity("fixtures/real/parity_smollm2.json");
}

TEST_CASE("engine parity: Gemma 3, two rope bases and a window on five layers of six", "[engine][parity][real]") {
  FATHOM_NEEDS_SHARED("fixtures/real/parity_gemma3.json");
  check_parity("fixtures/real/parity_gemma3.json");
}
