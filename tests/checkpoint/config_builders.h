#pragma once
// Small config.json objects, resolved without touching the disk.

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "harness/checkpoint/hf_positions.h"
#include "tests/checkpoint/file_builders.h"

namespace fathom::test {

inline checkpoint::DecoderConfig resolve(const nlohmann::json& config) {
  return checkpoint::resolve_hf_positions(checkpoint::JsonObject::parse(config.dump(), "config.json", 16));
}

/// The message without its "model: config.json: ".
inline std::string resolve_error(const nlohmann::json& config) {
  const std::string message = model_error([&] { resolve(config); });
  const std::string head = "model: config.json: ";
  return message.rfind(head, 0) == 0 ? message.substr(head.size()) : message;
}

/// Four layers of four heads of `d_head`, 4096 tokens.
inline nlohmann::json position_config(const std::string& model_type, std::int64_t d_head = 64) {
  return {{"model_type", model_type}, {"hidden_size", 4 * d_head},       {"num_hidden_layers", 4},
          {"num_attention_heads", 4}, {"max_position_embeddings", 4096}, {"head_dim", d_head}};
}

inline nlohmann::json with_block(nlohmann::json config, nlohmann::json block) {
  config["rope_scaling"] = std::move(block);
  return config;
}

inline std::vector<double> frequencies(const checkpoint::LayerSpec& layer, std::int64_t seq_len = 1) {
  return checkpoint::resolve_frequencies(layer.position, seq_len).inv_freq;
}

/// Largest |a / b - 1|; infinite for lists of different lengths.
inline double worst_ratio(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, b[i] == 0 ? (a[i] == 0 ? 0 : INFINITY) : std::abs(a[i] / b[i] - 1));
  }
  return worst;
}

}  // namespace fathom::test
