#include "harness/checkpoint/gguf_positions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/checkpoint/gguf_family.h"
#include "harness/checkpoint/gguf_scaling.h"
#include "harness/checkpoint/position_check.h"
#include "harness/core/text_util.h"

namespace fathom::checkpoint {
namespace {

constexpr std::int64_t kGgufMaxLayers = 4096;
constexpr std::int64_t kGgufMaxSize = std::int64_t{1} << 28;
constexpr std::int64_t kGgufMaxContext = std::int64_t{1} << 40;
constexpr double kGgufTheta = 10000;
/// The only one that llama.cpp knows.
constexpr std::int64_t kT5MaxDistance = 128;

enum class GgufLayer { kFull, kWindow };

class GgufPositionReader {
 public:
  GgufPositionReader(const GgufFile& file, const GgufFamily& family) : file_(file), family_(family) {}

  DecoderConfig read() {
    config_.architecture = family_.architecture;
    config_.name = std::string(file_.text("general.name").value_or(""));
    const std::int64_t n_layers = required_gguf_integer(file_, key("block_count"), 1, kGgufMaxLayers);
    config_.d_model = required_gguf_integer(file_, key("embedding_length"), 1, kGgufMaxSize);
    config_.claimed_context = required_gguf_integer(file_, key("context_length"), 1, kGgufMaxContext);
    n_layers_ = static_cast<std::size_t>(n_layers);
    heads_ = gguf_layer_integers(file_, key("attention.head_count"), n_layers_, 0, std::nullopt);
    kv_heads_ = gguf_layer_integers(file_, key("attention.head_count_kv"), n_layers_, 0, heads_);
    windows_ = window_layers();
    if (family_.scheme == "rope")
      scalings_ = read_gguf_scaling(file_, family_, config_.claimed_context, config_.warnings);
    for (std::size_t i = 0; i < n_layers_; ++i) config_.layers.push_back(read_layer(i));
    const bool declared = file_.metadata().count(key("rope.scaling.original_context_length")) != 0;
    if (declared && scalings_.strict.method != "none") config_.trained_context = scalings_.strict.original_context;
    return std::move(config_);
  }

 private:
  std::string key(std::string_view name) const { return fmt::format("{}.{}", family_.architecture, name); }

  std::int64_t integer_or(std::string_view name, std::int64_t fallback, std::int64_t low, std::int64_t high) const {
    const std::int64_t value = file_.integer(key(name)).value_or(fallback);
    if (value < low || value > high) file_.fail(key(name), fmt::format("= {} is outside {}..{}", value, low, high));
    return value;
  }

  double positive_or(std::string_view name, double fallback) const {
    const double value = file_.real(key(name)).value_or(fallback);
    if (!(value > 0) || !std::isfinite(value)) {
      file_.fail(key(name), fmt::format("= {} must be above 0", format_double(value)));
    }
    return value;
  }

  /// Which layers have a window: a list of flags, or "full iff (i + 1) % n == 0".
  std::vector<bool> window_layers() {
    std::vector<bool> out(n_layers_, false);
    warn_without_window();
    window_ = integer_or("attention.sliding_window", family_.default_window, 0, kGgufMaxContext);
    if (window_ == 0) return out;
    const std::string pattern_key = key("attention.sliding_window_pattern");
    const auto found = file_.metadata().find(pattern_key);
    if (found != file_.metadata().end() && std::holds_alternative<std::vector<std::int64_t>>(found->second)) {
      const auto flags = gguf_layer_integers(file_, pattern_key, n_layers_, 0, std::nullopt);
      std::transform(flags.begin(), flags.end(), out.begin(), [](std::int64_t flag) { return flag != 0; });
      return out;
    }
    const std::int64_t n = integer_or("attention.sliding_window_pattern", family_.window_pattern, 0, kGgufMaxLayers);
    for (std::size_t i = 0; n > 0 && i < n_layers_; ++i) out[i] = static_cast<std::int64_t>(i + 1) % n != 0;
    // Beyond the context a window hides nothing.
    if (n > 0 || window_ >= config_.claimed_context) return out;
    if (family_.windows_everywhere) {
      out.assign(n_layers_, true);
      warn(fmt::format("{} = {} holds for every layer; llama.cpp ignores it for this architecture",
                       key("attention.sliding_window"), window_));
    } else {
      warn(fmt::format("{} = {} is not used, as in llama.cpp", key("attention.sliding_window"), window_));
    }
    return out;
  }

  void warn(const std::string& text) { config_.warnings.push_back(file_.where() + ": " + text); }

  /// What llama.cpp's converter drops.
  void warn_without_window() {
    if (family_.makers_window == 0 || family_.makers_window >= config_.claimed_context) return;
    if (file_.integer(key("attention.sliding_window"))) return;
    warn(fmt::format("{} is missing; the maker's configurations have {}. Attention is full, as in llama.cpp",
                     key("attention.sliding_window"), family_.makers_window));
  }

  bool rotates(std::size_t i) const {
    const auto number = static_cast<std::int64_t>(i + 1);
    if (family_.rope_step != 0 && number % family_.rope_step == 0) return false;
    // Without any window such a model rotates everywhere.
    return !family_.windows_rotate_only || windows_[i] || window_ == 0;
  }

  bool has_softmax(std::size_t i) const {
    const std::int64_t step =
        family_.softmax_interval == 0 ? 0 : integer_or("full_attention_interval", family_.softmax_interval, 1, 4096);
    return heads_[i] != 0 && kv_heads_[i] != 0 && (step == 0 || static_cast<std::int64_t>(i + 1) % step == 0);
  }

  LayerSpec read_layer(std::size_t i) {
    LayerSpec layer;
    layer.n_heads = heads_[i];
    layer.n_kv_heads = kv_heads_[i];
    layer.softmax_attention = has_softmax(i);
    layer.position.kind = "nope";
    if (!layer.softmax_attention) return layer;
    if (heads_[i] % kv_heads_[i] != 0) {
      file_.fail(key("attention.head_count_kv"),
                 fmt::format("= {} does not divide head_count = {}", kv_heads_[i], heads_[i]));
    }
    const GgufLayer kind = windows_[i] ? GgufLayer::kWindow : GgufLayer::kFull;
    layer.d_head = head_width(kind, heads_[i]);
    if (windows_[i]) layer.window = window_;
    if (family_.chunk != 0 && rotates(i))
      layer.chunk = integer_or("attention.chunk_size", family_.chunk, 1, kGgufMaxContext);
    read_position(kind, rotates(i), layer);
    layer.softmax_scale = softmax_scale(layer, i);
    return layer;
  }

  std::int64_t head_width(GgufLayer kind, std::int64_t n_heads) const {
    const char* own = family_.latent ? "attention.key_length_mla" : "attention.key_length_swa";
    if ((family_.latent || kind == GgufLayer::kWindow) && file_.integer(key(own))) {
      return integer_or(own, 0, 1, kGgufMaxSize);
    }
    if (!file_.integer(key("attention.key_length")) && config_.d_model % n_heads != 0) {
      file_.fail(key("attention.key_length"),
                 fmt::format("is missing, and the width {} is no multiple of {} heads", config_.d_model, n_heads));
    }
    return integer_or("attention.key_length", config_.d_model / n_heads, 1, kGgufMaxSize);
  }

  void read_position(GgufLayer kind, bool rotated, LayerSpec& layer) {
    PositionSpec& position = layer.position;
    if (family_.scheme == "alibi") {
      position.kind = "alibi";
      position.options["max_bias"] =
          format_double(positive_or("attention.max_alibi_bias", family_.max_alibi_bias.value_or(0)));
    } else if (family_.scheme == "learned") {
      position.kind = "learned";
      position.options["positions"] = std::to_string(config_.claimed_context);
    } else if (family_.scheme == "t5") {
      position.kind = "t5";
      position.options = {{"buckets", std::to_string(integer_or("attention.relative_buckets_count", 0, 2, 1 << 20))},
                          {"max_distance", std::to_string(kT5MaxDistance)},
                          {"shared", "on"}};
    } else if (family_.scheme == "rope") {
      if (rotated) read_rotation(kind, layer);
      read_temperature(rotated, position);
    }
  }

  void read_rotation(GgufLayer kind, LayerSpec& layer) {
    PositionSpec& position = layer.position;
    position.kind = "rope";
    position.layout = family_.layout;
    position.side = family_.side;
    const bool own_base = kind == GgufLayer::kWindow &&
                          (family_.swa_base.has_value() || file_.real(key("rope.freq_base_swa")).has_value());
    const double base = positive_or("rope.freq_base", kGgufTheta);
    position.rope_base = own_base ? positive_or("rope.freq_base_swa", family_.swa_base.value_or(base)) : base;
    const bool own_width = kind == GgufLayer::kWindow && file_.integer(key("rope.dimension_count_swa")).has_value();
    const char* width_key = own_width ? "rope.dimension_count_swa" : "rope.dimension_count";
    position.rotary_dim = file_.integer(key(width_key)).value_or(layer.d_head);
    if (position.rotary_dim < 2 || position.rotary_dim > layer.d_head || position.rotary_dim % 2 != 0) {
      file_.fail(key(width_key),
                 fmt::format("= {} must be an even number in 2..{}", position.rotary_dim, layer.d_head));
    }
    position.scaling.original_context = config_.claimed_context;
    position.own_rotation =
        kind == GgufLayer::kWindow && (family_.windows_unscaled || family_.swa_base || position.rope_base != base);
    // Layers with a theta of their own are never scaled.
    const bool unscaled = kind == GgufLayer::kWindow && (family_.windows_unscaled || family_.swa_base.has_value());
    if (!unscaled) {
      position.scaling = scalings_.strict;
      if (!scalings_.difference.empty()) position.gguf = scalings_;
    }
    check_declared_position(position, file_.where());
  }

  /// Llama-4: layers without rotation; Mistral: all layers, with the length the scaling starts from.
  void read_temperature(bool rotated, PositionSpec& position) const {
    const double scale = file_.real(key("attention.temperature_scale")).value_or(family_.temperature_scale.value_or(0));
    if (scale == 0 || (family_.temperature_scale && rotated)) return;
    const bool per_layer = family_.temperature_scale.has_value();
    position.temperature.kind = per_layer ? rope::TemperatureKind::kLlama4 : rope::TemperatureKind::kMinistral3;
    position.temperature.scale = scale;
    const std::int64_t fallback = per_layer ? family_.temperature_length : scalings_.strict.original_context;
    position.temperature.length = integer_or("attention.temperature_length", fallback, 1, kGgufMaxContext);
  }

  std::optional<double> softmax_scale(const LayerSpec& layer, std::size_t index) {
    const double declared = file_.real(key("attention.scale")).value_or(0);
    if (declared < 0 || !std::isfinite(declared)) file_.fail(key("attention.scale"), "must be above 0");
    if (declared > 0) return declared;  // llama.cpp: 0 stands for "not given"
    if (family_.softmax_scale == "one") return 1;
    const auto n_layers = static_cast<std::int64_t>(n_layers_);
    const GemmaScale known = gemma_scale(family_, n_layers, config_.d_model);
    if (index == 0 && known == GemmaScale::kUnknown) {
      warn(fmt::format(
          "{} is missing, and {} layers of width {} are none of the published sizes: 1 / sqrt({}) stands for "
          "the maker's query_pre_attn_scalar, as in llama.cpp",
          key("attention.scale"), n_layers, config_.d_model, layer.d_head));
    }
    if (known != GemmaScale::kByWidth) return std::nullopt;
    return 1 / std::sqrt(static_cast<double>(config_.d_model) / static_cast<double>(layer.n_heads));
  }

  const GgufFile& file_;
  const GgufFamily& family_;
  DecoderConfig config_;
  std::size_t n_layers_ = 0;
  std::vector<std::int64_t> heads_, kv_heads_;
  std::int64_t window_ = 0;
  std::vector<bool> windows_;
  GgufScalings scalings_;
};

}  // namespace

std::int64_t required_gguf_integer(const GgufFile& file, const std::string& key, std::int64_t low, std::int64_t high) {
  const auto value = file.integer(key);
  if (!value) file.fail(key, fmt::format("is missing; an integer in {}..{} is needed", low, high));
  if (*value < low || *value > high) file.fail(key, fmt::format("= {} is outside {}..{}", *value, low, high));
  return *value;
}

std::vector<std::int64_t> gguf_layer_integers(const GgufFile& file, const std::string& key, std::size_t n_layers,
                                              std::int64_t low, std::optional<std::vector<std::int64_t>> fallback) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) {
    if (fallback) return *fallback;
    file.fail(key, "is missing");
  }
  std::vector<std::int64_t> values;
  if (std::holds_alternative<std::vector<std::int64_t>>(found->second)) {
    values = *file.integer_list(key);
    if (values.size() != n_layers) {
      file.fail(key, fmt::format("has {} entries for {} layers", values.size(), n_layers));
    }
  } else {
    values.assign(n_layers, *file.integer(key));
  }
  for (const std::int64_t value : values) {
    if (value < low || value > kGgufMaxSize)
      file.fail(key, fmt::format("= {} is outside {}..{}", value, low, kGgufMaxSize));
  }
  return values;
}

DecoderConfig resolve_gguf_positions(const GgufFile& file) {
  const auto architecture = file.text("general.architecture");
  if (!architecture) file.fail("general.architecture", "is missing");
  const GgufFamily* family = find_gguf_family(*architecture);
  if (family == nullptr) {
    file.fail("general.architecture",
              fmt::format("= '{}' is not supported; known: {}", *architecture, join(gguf_architectures(), ", ")));
  }
  return GgufPositionReader(file, *family).read();
}

}  // namespace fathom::checkpoint
