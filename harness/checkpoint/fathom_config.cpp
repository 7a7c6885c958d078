#include "harness/checkpoint/fathom_config.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/checkpoint/position_check.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::checkpoint {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t kFathomConfigVersion = 1;
constexpr std::int64_t kFathomMaxLayers = 4096;

// Names of the enumerators, in the order of their declaration.
constexpr std::string_view kLayoutNames[] = {"split_half", "interleaved", "interleaved_in_split_out"};
constexpr std::string_view kSideNames[] = {"prefix", "suffix"};
constexpr std::string_view kNormNames[] = {"rms", "layer"};
constexpr std::string_view kActivationNames[] = {"silu", "gelu", "gelu_tanh", "relu"};
constexpr std::string_view kPolicyNames[] = {"fixed", "consistent", "frozen", "hf"};

/// Writes each visited field into a JSON object.
class ConfigFieldWriter {
 public:
  template <typename Value>
  void field(const char* name, Value& value) {
    out_[name] = value;
  }
  template <typename Value>
  void field(const char* name, std::optional<Value>& value) {
    out_[name] = value ? ordered_json(*value) : ordered_json(nullptr);
  }
  /// Younger than the format: written only where it is set, so that older builds read what they can run.
  void added(const char* name, std::optional<std::int64_t>& value) {
    if (value) out_[name] = *value;
  }
  void added(const char* name, rope::QueryTemperature& value) {
    if (value.kind != rope::TemperatureKind::kNone) object(name, value);
  }
  void kind(const char* name, rope::TemperatureKind& value) { out_[name] = std::string(rope::to_string(value)); }
  template <typename Enum, std::size_t n>
  void choice(const char* name, Enum& value, const std::string_view (&names)[n]) {
    out_[name] = std::string(names[static_cast<std::size_t>(value)]);
  }
  void options(const char* name, OptionSource& value) {
    out_[name] = {{"where", value.where()}, {"values", value.values()}};
  }
  template <typename Struct>
  void object(const char* name, Struct& value) {
    ConfigFieldWriter inner;
    visit_fields(inner, value);
    out_[name] = inner.out_;
  }
  template <typename Struct>
  void objects(const char* name, std::vector<Struct>& values) {
    out_[name] = ordered_json::array();
    for (Struct& value : values) {
      ConfigFieldWriter inner;
      visit_fields(inner, value);
      out_[name].push_back(inner.out_);
    }
  }
  ordered_json take() { return std::move(out_); }

 private:
  ordered_json out_ = ordered_json::object();
};

/// Reads each visited field; all must be there.
class ConfigFieldReader {
 public:
  explicit ConfigFieldReader(const JsonObject& in) : in_(in) {}

  void field(const char* name, std::int64_t& value) { value = needed(name, in_.integer(name)); }
  void field(const char* name, double& value) { value = needed(name, in_.real(name)); }
  void field(const char* name, bool& value) { value = needed(name, in_.flag(name)); }
  void field(const char* name, std::string& value) { value = needed(name, in_.text(name)); }
  void field(const char* name, std::vector<std::string>& value) { value = needed(name, in_.text_list(name)); }
  void field(const char* name, std::map<std::string, std::string>& value) {
    value = read_texts(needed(name, in_.object(name)));
  }
  void field(const char* name, std::optional<std::int64_t>& value) { value = in_.integer(name); }
  void field(const char* name, std::optional<double>& value) { value = in_.real(name); }
  void added(const char* name, std::optional<std::int64_t>& value) { value = in_.integer(name); }
  void added(const char* name, rope::QueryTemperature& value) {
    if (in_.has(name)) object(name, value);
  }
  void kind(const char* name, rope::TemperatureKind& value) {
    const std::string text = needed(name, in_.text(name));
    try {
      value = rope::parse_temperature_kind(text);
    } catch (const ConfigError& error) {
      in_.fail(name, fmt::format("= '{}': {}", text, error.what()));
    }
  }

  template <typename Enum, std::size_t n>
  void choice(const char* name, Enum& value, const std::string_view (&names)[n]) {
    const std::string text = needed(name, in_.text(name));
    for (std::size_t i = 0; i < n; ++i) {
      if (names[i] == text) {
        value = static_cast<Enum>(i);
        return;
      }
    }
    in_.fail(name, fmt::format("= '{}' must be one of {}", text, fmt::join(names, ", ")));
  }
  void options(const char* name, OptionSource& value) {
    const JsonObject inner = needed(name, in_.object(name));
    value = OptionSource(inner.required_text("where"), read_texts(ConfigFieldReader(inner).needed_object("values")));
  }
  template <typename Struct>
  void object(const char* name, Struct& value) {
    read_object(needed(name, in_.object(name)), value);
  }
  template <typename Struct>
  void objects(const char* name, std::vector<Struct>& values) {
    values.clear();
    for (const JsonObject& entry : needed(name, in_.object_list(name))) {
      values.emplace_back();
      read_object(entry, values.back());
    }
  }
  template <typename Struct>
  static void read_object(const JsonObject& from, Struct& value) {
    ConfigFieldReader reader(from);
    visit_fields(reader, value);
    for (const std::string& key : from.unread_keys()) from.fail(key, "is an unknown key");
  }

 private:
  template <typename Value>
  Value needed(const char* name, std::optional<Value> value) const {
    if (!value) in_.fail(name, "is missing");
    return std::move(*value);
  }
  JsonObject needed_object(const char* name) const { return needed(name, in_.object(name)); }
  static std::map<std::string, std::string> read_texts(const JsonObject& from) {
    std::map<std::string, std::string> out;
    for (const std::string& key : from.keys()) out[key] = from.required_text(key);
    return out;
  }

  const JsonObject& in_;
};

// One declaration per field serves both directions, so that a new field cannot be written and not read.

template <typename Visitor>
void visit_fields(Visitor& v, ScalingSpec& s) {
  v.field("method", s.method);
  v.field("factor", s.factor);
  v.field("original_context", s.original_context);
  v.choice("length_policy", s.length_policy, kPolicyNames);
  v.field("frozen_length", s.frozen_length);
  v.options("options", s.options);
}

template <typename Visitor>
void visit_fields(Visitor& v, rope::QueryTemperature& t) {
  v.kind("kind", t.kind);
  v.field("scale", t.scale);
  v.field("length", t.length);
}

template <typename Visitor>
void visit_fields(Visitor& v, PositionSpec& p) {
  v.field("kind", p.kind);
  v.choice("layout", p.layout, kLayoutNames);
  v.choice("side", p.side, kSideNames);
  v.field("rotary_dim", p.rotary_dim);
  v.field("rope_base", p.rope_base);
  v.object("scaling", p.scaling);
  v.field("options", p.options);
  v.added("temperature", p.temperature);
}

template <typename Visitor>
void visit_fields(Visitor& v, LayerSpec& l) {
  v.field("n_heads", l.n_heads);
  v.field("n_kv_heads", l.n_kv_heads);
  v.field("d_head", l.d_head);
  v.field("d_ff", l.d_ff);
  v.field("window", l.window);
  v.added("chunk", l.chunk);
  v.field("softmax_scale", l.softmax_scale);
  v.object("position", l.position);
}

template <typename Visitor>
void visit_fields(Visitor& v, DecoderConfig& c) {
  v.field("name", c.name);
  v.field("architecture", c.architecture);
  v.field("vocab_size", c.vocab_size);
  v.field("d_model", c.d_model);
  v.field("claimed_context", c.claimed_context);
  v.field("trained_context", c.trained_context);
  v.choice("norm", c.norm, kNormNames);
  v.field("norm_eps", c.norm_eps);
  v.field("norm_bias", c.norm_bias);
  v.choice("activation", c.activation, kActivationNames);
  v.field("gated_mlp", c.gated_mlp);
  v.field("attention_bias", c.attention_bias);
  v.field("attention_out_bias", c.attention_out_bias);
  v.field("mlp_bias", c.mlp_bias);
  v.field("tied_head", c.tied_head);
  v.field("warnings", c.warnings);
  v.objects("layers", c.layers);
}

void check_fathom_layer(const LayerSpec& layer, const std::string& where, std::size_t index) {
  const bool positive = layer.n_heads > 0 && layer.n_kv_heads > 0 && layer.d_head > 0 && layer.d_ff > 0;
  if (!positive || layer.n_heads % layer.n_kv_heads != 0) {
    throw ModelError(fmt::format(
        "model: {}: layers[{}] has n_heads = {}, n_kv_heads = {}, d_head = {}, d_ff = {}; all must be above 0, and "
        "n_kv_heads must divide n_heads",
        where, index, layer.n_heads, layer.n_kv_heads, layer.d_head, layer.d_ff));
  }
  const std::int64_t r = layer.position.rotary_dim;
  if (r < 0 || r > layer.d_head || r % 2 != 0) {
    throw ModelError(fmt::format("model: {}: layers[{}].position.rotary_dim = {} must be an even number in 0..{}",
                                 where, index, r, layer.d_head));
  }
  if (layer.window && *layer.window < 1) {
    throw ModelError(fmt::format("model: {}: layers[{}].window = {} must be above 0", where, index, *layer.window));
  }
  if (layer.chunk && *layer.chunk < 1) {
    throw ModelError(fmt::format("model: {}: layers[{}].chunk = {} must be above 0", where, index, *layer.chunk));
  }
  check_declared_position(layer.position, where);
}

}  // namespace

std::string fathom_config_json(const DecoderConfig& config) {
  DecoderConfig copy = config;
  ConfigFieldWriter writer;
  visit_fields(writer, copy);
  ordered_json out = {{"model_type", "fathom"}, {"format_version", kFathomConfigVersion}};
  out.update(writer.take());
  return out.dump(2) + "\n";
}

DecoderConfig parse_fathom_config(const JsonObject& json) {
  json.has("model_type");
  const std::int64_t version = json.integer("format_version").value_or(0);
  if (version != kFathomConfigVersion) {
    json.fail("format_version", fmt::format("= {} cannot be read; this build reads {}", version, kFathomConfigVersion));
  }
  DecoderConfig config;
  ConfigFieldReader::read_object(json, config);
  json.required_integer("vocab_size", 1, INT64_MAX);
  json.required_integer("d_model", 1, INT64_MAX);
  json.required_integer("claimed_context", 1, INT64_MAX);
  json.required_positive("norm_eps");
  if (config.layers.empty() || config.n_layers() > kFathomMaxLayers) {
    json.fail("layers", fmt::format("has {} entries; 1..{} are possible", config.n_layers(), kFathomMaxLayers));
  }
  for (std::size_t i = 0; i < config.layers.size(); ++i) check_fathom_layer(config.layers[i], json.where(), i);
  return config;
}

}  // namespace fathom::checkpoint
