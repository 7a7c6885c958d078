#include "harness/checkpoint/decoder_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/rope/position_remap.h"

namespace fathom::checkpoint {
namespace {

std::unique_ptr<rope::RopeScaling> make_scaling(const ScalingSpec& spec) {
  return rope::scalings().at(spec.method).make(spec.factor, spec.options);
}

rope::RopeGeometry geometry_of(const PositionSpec& position) {
  return {position.rotary_dim, position.rope_base, position.scaling.original_context};
}

std::string describe_scaling(const PositionSpec& position) {
  const ScalingSpec& spec = position.scaling;
  const rope::RopeScalingEntry& entry = rope::scalings().at(spec.method);
  const auto scaling = make_scaling(spec);
  std::vector<std::string> parts;
  if (entry.uses_factor) {
    parts.push_back("factor=" + format_double(spec.factor));
    parts.push_back(fmt::format("original_context={}", spec.original_context));
  }
  if (scaling->depends_on_length()) {
    parts.push_back("mode=" + std::string(rope::to_string(spec.length_policy)));
    if (spec.length_policy == rope::LengthPolicy::kFrozen) parts.push_back(fmt::format("at={}", spec.frozen_length));
  }
  if (const std::string options = scaling->canonical_options(); !options.empty()) parts.push_back(options);
  return parts.empty() ? spec.method : fmt::format("{}({})", spec.method, join(parts, ";"));
}

std::string describe_remap(const PositionSpec& position) {
  const rope::PositionRemapEntry& entry = rope::position_remaps().at(position.remap.method);
  const std::int64_t original = position.scaling.original_context;
  return fmt::format("{}({})", entry.name, entry.make(original, position.remap.options)->canonical_options());
}

std::string describe_temperature(const rope::QueryTemperature& temperature) {
  return fmt::format("{}(scale={};length={})", rope::to_string(temperature.kind), format_double(temperature.scale),
                     temperature.length);
}

std::string describe_layer(const LayerSpec& layer) {
  const PositionSpec& position = layer.position;
  std::vector<std::string> parts = {position.kind};
  if (position.rotary_dim > 0) {
    parts.push_back(fmt::format("layout={}", to_string(position.layout)));
    parts.push_back(fmt::format("side={}", to_string(position.side)));
    parts.push_back(fmt::format("rotary_dim={}", position.rotary_dim));
    parts.push_back("base=" + format_double(position.rope_base));
    parts.push_back("scaling=" + describe_scaling(position));
  }
  for (const auto& [name, value] : position.options) parts.push_back(fmt::format("{}={}", name, value));
  if (position.rotary_dim > 0 && position.table_dtype != rope::FloatFormat::kFloat32) {
    parts.push_back(fmt::format("table_dtype={}", rope::to_string(position.table_dtype)));
  }
  if (position.remap.method != "none") parts.push_back("remap=" + describe_remap(position));
  if (position.temperature.kind != rope::TemperatureKind::kNone) {
    parts.push_back("temperature=" + describe_temperature(position.temperature));
  }
  if (!layer.softmax_attention) parts.push_back("no_softmax_attention");
  if (layer.chunk) parts.push_back(fmt::format("chunk={}", *layer.chunk));
  if (layer.window) parts.push_back(fmt::format("window={}", *layer.window));
  if (layer.softmax_scale) parts.push_back("softmax_scale=" + format_double(*layer.softmax_scale));
  return join(parts, " ");
}

}  // namespace

std::string_view to_string(RopeLayout layout) {
  switch (layout) {
    case RopeLayout::kSplitHalf:
      return "split_half";
    case RopeLayout::kInterleaved:
      return "interleaved";
    case RopeLayout::kInterleavedInSplitOut:
      return "interleaved_in_split_out";
  }
  return "";
}

std::string_view to_string(RotarySide side) {
  return side == RotarySide::kPrefix ? "prefix" : "suffix";
}

std::string_view to_string(GgufReading reading) {
  return reading == GgufReading::kStrict ? "strict" : "lcpp";
}

GgufReading parse_gguf_reading(std::string_view name) {
  for (const GgufReading reading : {GgufReading::kStrict, GgufReading::kLcpp}) {
    if (to_string(reading) == name) return reading;
  }
  throw ConfigError(fmt::format("rope.gguf = {} must be strict or lcpp", name));
}

std::int64_t remembered_width(const DecoderConfig& config, const LayerSpec& layer) {
  if (layer.linear && layer.linear->kind == LinearKind::kMlstm) return 2 * layer.n_heads;
  return layer.conv_width > 0 ? 2 * layer.n_kv_heads * layer.d_head + 2 * config.d_model : 0;
}

rope::RopeFrequencies resolve_frequencies(const PositionSpec& position, std::int64_t seq_len) {
  if (position.rotary_dim == 0) return {};
  const auto scaling = make_scaling(position.scaling);
  if (scaling->depends_on_length()) {
    switch (position.scaling.length_policy) {
      case rope::LengthPolicy::kConsistent:
      case rope::LengthPolicy::kHf:
        break;
      case rope::LengthPolicy::kFrozen:
        if (position.scaling.frozen_length <= 0) {
          throw ConfigError(fmt::format("scaling {}: mode frozen needs a length above 0, not {}",
                                        position.scaling.method, position.scaling.frozen_length));
        }
        seq_len = position.scaling.frozen_length;
        break;
      case rope::LengthPolicy::kFixed:
        throw ConfigError(fmt::format(
            "scaling {}: the frequencies depend on the length; mode must be consistent, frozen or hf, not fixed",
            position.scaling.method));
    }
  }
  rope::RopeFrequencies out = scaling->frequencies(geometry_of(position), seq_len);
  out.table_dtype = position.table_dtype;
  if (position.norm_after_rotation) out.attention_factor = 1;
  return out;
}

bool depends_on_length(const PositionSpec& position) {
  const rope::LengthPolicy policy = position.scaling.length_policy;
  if (policy == rope::LengthPolicy::kFrozen || policy == rope::LengthPolicy::kFixed) return false;
  return scales_with_length(position);
}

bool scales_with_length(const PositionSpec& position) {
  return position.rotary_dim > 0 && make_scaling(position.scaling)->depends_on_length();
}

std::unique_ptr<rope::PositionRemap> make_remap(const PositionSpec& position) {
  if (position.remap.method == "none") return nullptr;
  if (position.scaling.original_context < 1) {
    throw ConfigError(
        fmt::format("remap {}: original_context = {} must be above 0; set scaling.original_context to the "
                    "length the model was trained on",
                    position.remap.method, position.scaling.original_context));
  }
  return rope::position_remaps()
      .at(position.remap.method)
      .make(position.scaling.original_context, position.remap.options);
}

std::int64_t default_original_context(const DecoderConfig& config) {
  for (const LayerSpec& layer : config.layers) {
    const ScalingSpec& scaling = layer.position.scaling;
    if (layer.position.rotary_dim > 0 && scaling.method != "none" && scaling.original_context > 0) {
      return scaling.original_context;
    }
  }
  return config.trained_context.value_or(config.claimed_context);
}

const LayerSpec& telling_layer(const DecoderConfig& config) {
  const auto rank = [](const LayerSpec& layer) {
    return (layer.softmax_attention ? 4 : 0) + (layer.position.rotary_dim > 0 ? 2 : 0) + (layer.window ? 0 : 1);
  };
  return *std::max_element(config.layers.begin(), config.layers.end(),
                           [&rank](const LayerSpec& a, const LayerSpec& b) { return rank(a) < rank(b); });
}

std::string describe_position(const DecoderConfig& config) {
  std::vector<std::string> parts;
  for (std::size_t first = 0; first < config.layers.size();) {
    const std::string text = describe_layer(config.layers[first]);
    std::size_t end = first + 1;
    while (end < config.layers.size() && describe_layer(config.layers[end]) == text) ++end;
    parts.push_back(end == first + 1 ? fmt::format("layer {}: {}", first, text)
                                     : fmt::format("layers {}-{}: {}", first, end - 1, text));
    first = end;
  }
  return join(parts, "\n");
}

}  // namespace fathom::checkpoint
