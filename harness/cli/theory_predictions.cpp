#include "harness/cli/theory_predictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "harness/checkpoint/inspect.h"
#include "harness/core/text_util.h"
#include "harness/rope/alibi_slopes.h"
#include "harness/rope/base_bound.h"
#include "harness/rope/prediction.h"
#include "harness/rope/t5_bucket.h"
#include "harness/rope/theory.h"

namespace fathom::cli {
namespace {

using nlohmann::ordered_json;

template <typename Value>
ordered_json or_null(const std::optional<Value>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

double option_or(const checkpoint::PositionSpec& position, const char* name, double fallback) {
  const auto found = position.options.find(name);
  return found == position.options.end() ? fallback : parse_double(found->second).value_or(fallback);
}

std::int64_t integer_option_or(const checkpoint::PositionSpec& position, const char* name, std::int64_t fallback) {
  const auto found = position.options.find(name);
  return found == position.options.end() ? fallback : parse_int(found->second).value_or(fallback);
}

/// A window hides what lies farther back: no distance beyond it occurs.
std::int64_t seen_length(const checkpoint::LayerSpec& layer, std::int64_t length) {
  return layer.window ? std::min(*layer.window, length) : length;
}

ordered_json curve_json(const std::vector<double>& inv_freq, std::int64_t n_still, std::int64_t length) {
  std::vector<std::int64_t> distances = {0};
  for (std::int64_t distance = 1; distance < length; distance *= 2) distances.push_back(distance);
  const std::vector<double> values = rope::decay_curve(inv_freq, n_still, distances);
  ordered_json curve = ordered_json::array();
  for (std::size_t i = 0; i < distances.size(); ++i) {
    curve.push_back({{"distance", distances[i]}, {"expected_score", values[i]}});
  }
  return curve;
}

ordered_json rotation_json(std::size_t index, const TheoryQuestion& question) {
  const checkpoint::LayerSpec& layer = question.config.layers[index];
  const checkpoint::PositionSpec& position = layer.position;
  rope::RotationQuestion asked;
  asked.inv_freq = checkpoint::resolve_frequencies(position, question.tested).inv_freq;
  asked.n_still = std::max<std::int64_t>(0, (layer.d_head - position.rotary_dim) / 2);
  asked.pretrained_base = question.pretrained.layers[index].position.rope_base;
  asked.trained = seen_length(layer, question.trained);
  asked.tested = seen_length(layer, question.tested);
  const bool plain = position.scaling.method == "none";
  const rope::RotationPrediction got =
      rope::predict_rotation(asked, plain ? std::optional<double>(position.rope_base) : std::nullopt);
  ordered_json out = {{"rotary_dim", position.rotary_dim},
                      {"base", position.rope_base},
                      {"scaling", position.scaling.method},
                      {"factor", position.scaling.factor},
                      {"channels", got.n_channels},
                      {"still_channels", got.n_still},
                      {"shortest_period", got.shortest_period},
                      {"longest_period", got.longest_period},
                      {"wrapped_trained", got.wrapped_trained},
                      {"wrapped_tested", got.wrapped_tested},
                      {"newly_wrapped", got.wrapped_tested - got.wrapped_trained},
                      {"unseen_channels", got.unseen_channels},
                      {"critical_dimension", got.critical_dimension},
                      {"extrapolation_limit", or_null(got.extrapolation)},
                      {"critical_base", or_null(got.critical_base)},
                      {"first_negative_advantage", or_null(got.first_negative)},
                      {"first_negative_advantage_whole_head", or_null(got.first_negative_head)},
                      {"searched_to", rope::kAdvantageSearchEnd},
                      {"distinct_positions_bf16", got.distinct_bf16},
                      {"distinct_positions_fp16", got.distinct_fp16},
                      {"subnormal_frequencies_fp16", got.subnormal_fp16},
                      {"float32_cosine_error", got.float32_cosine_error}};
  if (question.curve == TheoryQuestion::Curve::kDecay) {
    out["curve"] = curve_json(asked.inv_freq, asked.n_still, asked.tested);
  }
  return out;
}

ordered_json alibi_json(const checkpoint::LayerSpec& layer, const TheoryQuestion& question) {
  const std::vector<double> slopes = rope::alibi_slopes(layer.n_heads, option_or(layer.position, "max_bias", 8));
  const double scale = option_or(layer.position, "scale", 1);
  const auto [flattest, steepest] = std::minmax_element(slopes.begin(), slopes.end());
  const auto farthest = static_cast<double>(seen_length(layer, question.tested) - 1);
  return {{"steepest_slope", *steepest * scale},
          {"flattest_slope", *flattest * scale},
          {"epsilon", question.epsilon},
          {"shortest_horizon", rope::alibi_horizon(*steepest * scale, question.epsilon)},
          {"horizon", rope::alibi_horizon(*flattest * scale, question.epsilon)},
          {"penalty_at_end", *flattest * scale * farthest}};
}

/// Distance from which a bias with finitely many values tells nothing apart, where the scheme has one.
std::optional<std::int64_t> resolution_end(const checkpoint::LayerSpec& layer) {
  if (layer.position.kind == "t5") {
    const rope::T5Buckets buckets{integer_option_or(layer.position, "buckets", 32),
                                  integer_option_or(layer.position, "max_distance", 128),
                                  rope::BucketDirection::kCausal};
    rope::check_t5_buckets(buckets);
    return rope::t5_resolution_end(buckets);
  }
  if (layer.position.kind == "inkling") {
    return integer_option_or(layer.position, "extent", layer.window.value_or(1024));
  }
  return std::nullopt;
}

ordered_json layer_json(std::size_t index, const TheoryQuestion& question) {
  const checkpoint::LayerSpec& layer = question.config.layers[index];
  ordered_json out = {{"position", layer.softmax_attention ? layer.position.kind : "no softmax attention"},
                      {"n_heads", layer.n_heads},
                      {"d_head", layer.d_head},
                      {"window", or_null(layer.window)}};
  if (!layer.softmax_attention) return out;
  if (layer.position.rotary_dim > 0) out["rotation"] = rotation_json(index, question);
  if (layer.position.kind == "alibi") out["alibi"] = alibi_json(layer, question);
  if (const auto end = resolution_end(layer)) out["resolution_end"] = *end;
  return out;
}

/// Equal keys predict the same; the searches are run once for them.
std::string theory_key(const checkpoint::LayerSpec& layer) {
  const checkpoint::PositionSpec& position = layer.position;
  std::string key =
      fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", layer.softmax_attention, layer.n_heads, layer.d_head,
                  layer.window.value_or(0), position.kind, position.rotary_dim, format_double(position.rope_base),
                  position.scaling.method, format_double(position.scaling.factor), position.scaling.original_context);
  for (const auto& [name, value] : position.scaling.options.values()) key += "|" + name + "=" + value;
  for (const auto& [name, value] : position.options) key += "|" + name + "=" + value;
  return key;
}

/// What a reader should not overlook.
std::vector<std::string> group_warnings(const ordered_json& group, const TheoryQuestion& question) {
  std::vector<std::string> warnings;
  const std::int64_t first = group["layers"].front();
  if (group.contains("rotation")) {
    const ordered_json& rotation = group["rotation"];
    const ordered_json& negative = rotation["first_negative_advantage"];
    if (!negative.is_null() && negative.get<std::int64_t>() < question.tested) {
      warnings.push_back(
          fmt::format("layer {}: on average a similar key loses its advantage at distance {}, before the "
                      "tested length of {}",
                      first, negative.get<std::int64_t>(), question.tested));
    }
    if (rotation["unseen_channels"] > 0) {
      warnings.push_back(fmt::format("layer {}: {} channels reach angles that {} tokens of training never showed",
                                     first, rotation["unseen_channels"].get<std::int64_t>(), question.trained));
    }
  }
  if (group.contains("alibi") && group["alibi"]["horizon"].get<double>() < static_cast<double>(question.tested)) {
    warnings.push_back(fmt::format("layer {}: beyond {:.0f} tokens even the flattest head's penalty exceeds ln(1/{})",
                                   first, group["alibi"]["horizon"].get<double>(), format_double(question.epsilon)));
  }
  if (group.contains("resolution_end") && group["resolution_end"].get<std::int64_t>() < question.tested) {
    warnings.push_back(fmt::format("layer {}: distances from {} tokens on look alike", first,
                                   group["resolution_end"].get<std::int64_t>()));
  }
  return warnings;
}

}  // namespace

std::string theory_json(const TheoryQuestion& question) {
  const checkpoint::DecoderConfig& config = question.config;
  ordered_json out = {{"name", config.name},
                      {"claimed_context", config.claimed_context},
                      {"trained_context", question.trained},
                      {"tested_length", question.tested},
                      {"groups", ordered_json::array()},
                      {"warnings", checkpoint::position_warnings(config, question.tested)}};
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const std::string key =
        theory_key(config.layers[i]) + "|" + format_double(question.pretrained.layers[i].position.rope_base);
    const auto found = std::find(keys.begin(), keys.end(), key);
    if (found != keys.end()) {
      out["groups"][static_cast<std::size_t>(found - keys.begin())]["layers"].push_back(i);
      continue;
    }
    keys.push_back(key);
    ordered_json group;
    group["layers"] = ordered_json::array({i});
    group.update(layer_json(i, question));
    out["groups"].push_back(group);
  }
  for (const ordered_json& group : out["groups"]) {
    for (const std::string& warning : group_warnings(group, question)) out["warnings"].push_back(warning);
  }
  return out.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace fathom::cli
