#pragma once
// Tiny checkpoints with the reference's numbers: a folder each, with config.json, model.safetensors and expected.json.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/checkpoint/checkpoint.h"
#include "harness/core/error.h"
#include "harness/engine/torch_language_model.h"

namespace fathom::test {

/// Folders below `root` that hold an expected.json, sorted.
inline std::vector<std::string> fixture_names(const std::string& root) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    if (std::filesystem::exists(entry.path() / "expected.json")) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

inline nlohmann::json read_expected(const std::string& folder) {
  std::ifstream in(folder + "/expected.json");
  if (!in.good()) throw DataError("cannot read " + folder + "/expected.json");
  return nlohmann::json::parse(in);
}

/// A fixture with its weights loaded in float32.
struct Fixture {
  explicit Fixture(const std::string& folder)
      : expected(read_expected(folder)), checkpoint(checkpoint::open_checkpoint(folder)) {
    options.dtype = "float32";
    weights = engine::load_weights(*checkpoint, options);
    const bool has_encoder = expected.contains("encoder_input_ids");
    ids = expected[has_encoder ? "decoder_input_ids" : "input_ids"].get<TokenIds>();
    if (has_encoder) options.encoder_ids = expected["encoder_input_ids"].get<TokenIds>();
    tolerance = expected["tolerance_abs"].get<double>();
  }

  checkpoint::DecoderConfig with_policy(rope::LengthPolicy policy) const {
    checkpoint::DecoderConfig config = checkpoint->config();
    for (checkpoint::LayerSpec& layer : config.layers) layer.position.scaling.length_policy = policy;
    return config;
  }

  TokenIds greedy(const checkpoint::DecoderConfig& config, const TokenIds& prompt, std::size_t n) const {
    lm::Request request;
    request.prompt = prompt;
    request.max_new_tokens = static_cast<std::int64_t>(n);
    const auto completion = engine::make_language_model(weights, config, options)->complete({request}).front();
    if (!completion.error.empty()) throw ModelError(completion.error);
    return completion.ids;
  }

  nlohmann::json expected;
  std::unique_ptr<checkpoint::Checkpoint> checkpoint;
  engine::EngineOptions options;
  std::shared_ptr<const engine::LoadedWeights> weights;
  TokenIds ids;
  double tolerance = 0;
};

/// Of the last position's logits from the reference's.
inline double last_logit_difference(const Fixture& fixture, const std::vector<float>& last_logits) {
  const auto expected = fixture.expected["logits_last"].get<std::vector<double>>();
  if (expected.size() != last_logits.size()) throw ModelError("the reference has another number of logits");
  double largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    // A difference that is no number is the largest of all.
    const double difference = std::fabs(expected[i] - static_cast<double>(last_logits[i]));
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}

}  // namespace fathom::test
