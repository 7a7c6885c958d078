#include "harness/checkpoint/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/core/text_util.h"
#include "harness/rope/alibi_slopes.h"

namespace fathom::checkpoint {
namespace {

using nlohmann::ordered_json;

ordered_json option_value(const std::string& text) {
  if (const auto whole = parse_int(text)) return *whole;
  if (const auto number = parse_double(text)) return *number;
  if (text.find(',') == std::string::npos) return text;
  ordered_json list = ordered_json::array();
  for (const std::string& part : split_list(text)) list.push_back(option_value(part));
  return list;
}

template <typename Value>
ordered_json value_or_null(const std::optional<Value>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json count_or_null(std::int64_t value) {
  return value == 0 ? ordered_json(nullptr) : ordered_json(value);
}

void add_rotation(const PositionSpec& position, ordered_json& out) {
  out["rope_base"] = position.rope_base;
  out["side"] = std::string(to_string(position.side));
  out["scaling"] = position.scaling.method;
  out["factor"] = position.scaling.factor;
  out["original_context"] = count_or_null(position.scaling.original_context);
  out["depends_on_length"] = depends_on_length(position);
  ordered_json declared = ordered_json::object();
  for (const auto& [name, value] : position.scaling.options.values()) declared[name] = option_value(value);
  if (!declared.empty()) out["scaling_options"] = declared;
  if (position.remap.method != "none") out["remap"] = position.remap.method;
  if (position.gguf) out["gguf_reading"] = std::string(to_string(position.gguf->in_force));
  out["table_dtype"] = std::string(rope::to_string(position.table_dtype));
}

ordered_json position_parameters(const LayerSpec& layer) {
  const PositionSpec& position = layer.position;
  ordered_json out = ordered_json::object();
  if (!layer.softmax_attention) {
    out["softmax_attention"] = false;
    return out;
  }
  for (const auto& [name, value] : position.options) out[name] = option_value(value);
  if (position.rotary_dim > 0) add_rotation(position, out);
  if (position.kind == "alibi") {
    const auto given = position.options.find("max_bias");
    const double max_bias = given == position.options.end() ? 8 : parse_double(given->second).value_or(8);
    out["slopes"] = rope::alibi_slopes(layer.n_heads, max_bias);
  }
  if (layer.chunk) out["chunk"] = *layer.chunk;
  if (position.temperature.kind != rope::TemperatureKind::kNone) {
    out["temperature"] = {{"kind", std::string(rope::to_string(position.temperature.kind))},
                          {"scale", position.temperature.scale},
                          {"length", position.temperature.length}};
  }
  return out;
}

ordered_json softmax_scale_in_force(const LayerSpec& layer, const rope::RopeFrequencies& frequencies) {
  if (!layer.softmax_attention) return nullptr;
  const double scale = layer.softmax_scale.value_or(1 / std::sqrt(static_cast<double>(layer.d_head)));
  return scale * frequencies.softmax_scale_factor;
}

ordered_json inspect_layer(const LayerSpec& layer, std::size_t index, std::int64_t seq_len) {
  const PositionSpec& position = layer.position;
  const bool rotates = position.rotary_dim > 0;
  const rope::RopeFrequencies frequencies = resolve_frequencies(position, seq_len);
  ordered_json out;
  out["index"] = index;
  out["position"] = layer.softmax_attention ? position.kind : "none";
  out["layout"] = rotates ? ordered_json(std::string(to_string(position.layout))) : ordered_json(nullptr);
  out["rotary_dim"] = position.rotary_dim;
  out["inv_freq"] = frequencies.inv_freq;
  out["attention_factor"] = frequencies.attention_factor;
  out["softmax_scale"] = softmax_scale_in_force(layer, frequencies);
  out["window"] = value_or_null(layer.window);
  out["n_heads"] = count_or_null(layer.n_heads);
  out["n_kv_heads"] = count_or_null(layer.n_kv_heads);
  out["d_head"] = count_or_null(layer.d_head);
  out["parameters"] = position_parameters(layer);
  return out;
}

/// Frequencies and attention factor of one reading of a GGUF file.
rope::RopeFrequencies frequencies_of_reading(PositionSpec position, const ScalingSpec& scaling, std::int64_t seq_len) {
  const ScalingSpec in_force = position.scaling;
  position.scaling = scaling;
  position.scaling.length_policy = in_force.length_policy;
  position.scaling.frozen_length = in_force.frozen_length;
  return resolve_frequencies(position, seq_len);
}

std::string gguf_reading_line(const PositionSpec& position, std::int64_t seq_len) {
  const GgufScalings& gguf = *position.gguf;
  const rope::RopeFrequencies strict = frequencies_of_reading(position, gguf.strict, seq_len);
  const rope::RopeFrequencies lcpp = frequencies_of_reading(position, gguf.lcpp, seq_len);
  double apart = 1;
  for (std::size_t i = 0; i < strict.inv_freq.size(); ++i) {
    const double ratio = strict.inv_freq[i] / lcpp.inv_freq[i];
    apart = std::max({apart, ratio, 1 / ratio});
  }
  std::string numbers = fmt::format("at {} tokens frequencies are up to {:.3g} % apart", seq_len, 100 * (apart - 1));
  if (strict.attention_factor != lcpp.attention_factor) {
    numbers += fmt::format(", attention factors {:.6g} and {:.6g}", strict.attention_factor, lcpp.attention_factor);
  }
  return fmt::format("{}; {}; {} is in force, rope.gguf = {} chooses the other", gguf.difference, numbers,
                     to_string(gguf.in_force),
                     to_string(gguf.in_force == GgufReading::kStrict ? GgufReading::kLcpp : GgufReading::kStrict));
}

}  // namespace

std::vector<std::string> position_warnings(const DecoderConfig& config, std::int64_t seq_len) {
  std::vector<std::string> out = config.warnings;
  for (const LayerSpec& layer : config.layers) {
    if (!layer.position.gguf) continue;
    const std::string line = gguf_reading_line(layer.position, seq_len);
    if (std::find(out.begin(), out.end(), line) == out.end()) out.push_back(line);
  }
  return out;
}

std::string inspect_json(const DecoderConfig& config, std::int64_t seq_len) {
  ordered_json out;
  out["name"] = config.name;
  out["architecture"] = config.architecture;
  out["claimed_context"] = count_or_null(config.claimed_context);
  out["trained_context"] = value_or_null(config.trained_context);
  out["n_layers"] = config.n_layers();
  out["layers"] = ordered_json::array();
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    out["layers"].push_back(inspect_layer(config.layers[i], i, seq_len));
  }
  out["warnings"] = position_warnings(config, seq_len);
  return out.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace fathom::checkpoint
