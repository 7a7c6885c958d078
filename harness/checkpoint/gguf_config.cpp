#include "harness/checkpoint/gguf_config.h"

#include <fmt/format.h>

#include <cmath>

#include "harness/checkpoint/position_check.h"
#include "harness/core/text_util.h"

namespace fathom::checkpoint {
namespace {

constexpr std::int64_t kGgufMaxLayers = 4096;
constexpr std::int64_t kGgufMaxSize = std::int64_t{1} << 28;
constexpr std::int64_t kGgufMaxContext = std::int64_t{1} << 40;

/// A value that a file gives once for all layers, or as a list with one entry per layer.
std::vector<std::int64_t> per_layer_integers(const GgufFile& file, const std::string& key, std::size_t n_layers,
                                             std::optional<std::vector<std::int64_t>> fallback) {
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
    if (value < 1 || value > kGgufMaxSize) file.fail(key, fmt::format("= {} is outside 1..{}", value, kGgufMaxSize));
  }
  return values;
}

std::int64_t gguf_head_size(const GgufFile& file, const std::string& arch, std::int64_t d_model, std::int64_t n_heads) {
  const std::string key = arch + ".attention.key_length";
  if (!file.integer(key) && d_model % n_heads != 0) {
    file.fail(key, fmt::format("is missing, and the width {} is no multiple of {} heads", d_model, n_heads));
  }
  const std::int64_t d_head = file.integer(key).value_or(d_model / n_heads);
  if (d_head < 1 || d_head > kGgufMaxSize) file.fail(key, fmt::format("= {} is outside 1..{}", d_head, kGgufMaxSize));
  const std::int64_t value_length = file.integer(arch + ".attention.value_length").value_or(d_head);
  if (value_length != d_head) {
    file.fail(arch + ".attention.value_length",
              fmt::format("= {} differs from key_length = {}, which is not supported", value_length, d_head));
  }
  return d_head;
}

/// Numbers of a one-dimensional tensor as an option's text.
std::optional<std::string> tensor_as_option(const GgufFile& file, std::string_view name) {
  const GgufTensor* tensor = file.find_tensor(name);
  if (tensor == nullptr) return std::nullopt;
  const std::int64_t n = tensor->shape.back();
  if (tensor->shape.size() != 1 || n > kGgufMaxSize) file.fail(name, "must be a vector");
  std::vector<float> values(static_cast<std::size_t>(n));
  dequantize_range(*tensor->type, tensor->data, 0, n, values.data());
  std::vector<std::string> parts;
  for (const float value : values) parts.push_back(format_double(static_cast<double>(value)));
  return join(parts, ",");
}

class GgufScaling {
 public:
  GgufScaling(const GgufFile& file, const std::string& arch, DecoderConfig& config)
      : file_(file), prefix_(arch + ".rope."), config_(config) {}

  ScalingSpec read() {
    ScalingSpec spec;
    spec.original_context =
        file_.integer(prefix_ + "scaling.original_context_length").value_or(config_.claimed_context);
    read_factor(spec);
    const std::string type = scaling_type(spec.factor);
    if (type == "none") {
      spec.factor = 1;
      if (const auto divisors = tensor_as_option(file_, "rope_freqs.weight")) {
        spec.method = "divisors";
        values_["divisors"] = *divisors;
      }
    } else if (file_.find_tensor("rope_freqs.weight") != nullptr) {
      file_.fail("rope_freqs.weight", fmt::format("stands beside scaling type '{}', which is not supported", type));
    } else if (type == "linear") {
      spec.method = spec.factor > 1 ? "linear" : "none";
    } else if (type == "yarn") {
      read_yarn(spec);
    } else if (type == "longrope") {
      read_longrope(spec);
    } else {
      file_.fail(prefix_ + "scaling.type",
                 fmt::format("= '{}' is not supported; supported: none, linear, yarn, longrope", type));
    }
    spec.options = OptionSource(fmt::format("{} {}scaling", file_.where(), prefix_), values_);
    return spec;
  }

 private:
  void read_factor(ScalingSpec& spec) const {
    const std::string key = prefix_ + "scaling.factor";
    const auto factor = file_.real(key);
    spec.factor = factor ? *factor : file_.real(prefix_ + "scale_linear").value_or(1);
    if (spec.factor == 0) spec.factor = 1;  // llama.cpp: 0 stands for "not given"
    if (!(spec.factor >= 1) || !std::isfinite(spec.factor)) {
      file_.fail(key, fmt::format("= {} must be at least 1", format_double(spec.factor)));
    }
  }

  /// llama.cpp reads a missing type as linear; with a rope_freqs tensor and factor 1 that is no scaling.
  std::string scaling_type(double factor) const {
    const auto type = file_.text(prefix_ + "scaling.type");
    if (type && *type == "linear" && factor == 1) return "none";
    if (type) return std::string(*type);
    return factor > 1 ? "linear" : "none";
  }

  /// Amplitude m(1) of YaRN times the file's extra multiplier, the product that reaches llama.cpp's kernel.
  void read_yarn(ScalingSpec& spec) {
    spec.method = "yarn";
    const double extra = file_.real(prefix_ + "scaling.attn_factor").value_or(1);
    if (extra != 1) {
      const double m = spec.factor > 1 ? 0.1 * std::log(spec.factor) + 1 : 1;
      values_["attention_factor"] = format_double(m * extra);
    }
    copy("scaling.yarn_beta_fast", "beta_fast");
    copy("scaling.yarn_beta_slow", "beta_slow");
    if (const auto mix = file_.real(prefix_ + "scaling.yarn_ext_factor"); mix && *mix != 1) {
      config_.warnings.push_back(
          fmt::format("{}: {}scaling.yarn_ext_factor = {} is not used", file_.where(), prefix_, format_double(*mix)));
    }
  }

  void read_longrope(ScalingSpec& spec) {
    const auto short_list = tensor_as_option(file_, "rope_factors_short.weight");
    const auto long_list = tensor_as_option(file_, "rope_factors_long.weight");
    if (!short_list || !long_list) {
      file_.fail("rope_factors_short.weight", "and rope_factors_long.weight are needed by scaling type 'longrope'");
    }
    spec.method = "longrope";
    values_["short_factor"] = *short_list;
    values_["long_factor"] = *long_list;
    copy("scaling.attn_factor", "attention_factor");
    if (values_.count("attention_factor") == 0 && spec.factor == 1) {
      spec.factor = static_cast<double>(config_.claimed_context) / static_cast<double>(spec.original_context);
    }
  }

  void copy(const char* key, const char* option) {
    if (const auto value = file_.real(prefix_ + key)) values_[option] = format_double(*value);
  }

  const GgufFile& file_;
  std::string prefix_;
  DecoderConfig& config_;
  std::map<std::string, std::string> values_;
};

}  // namespace

std::int64_t required_gguf_integer(const GgufFile& file, const std::string& key, std::int64_t low, std::int64_t high) {
  const auto value = file.integer(key);
  if (!value) file.fail(key, fmt::format("is missing; an integer in {}..{} is needed", low, high));
  if (*value < low || *value > high) file.fail(key, fmt::format("= {} is outside {}..{}", *value, low, high));
  return *value;
}

DecoderConfig read_gguf_decoder(const GgufFile& file, const std::string& arch) {
  DecoderConfig out;
  out.architecture = arch;
  out.name = std::string(file.text("general.name").value_or(""));
  const auto n_layers = static_cast<std::size_t>(required_gguf_integer(file, arch + ".block_count", 1, kGgufMaxLayers));
  out.d_model = required_gguf_integer(file, arch + ".embedding_length", 1, kGgufMaxSize);
  out.claimed_context = required_gguf_integer(file, arch + ".context_length", 1, kGgufMaxContext);
  const std::string eps_key = arch + ".attention.layer_norm_rms_epsilon";
  const auto eps = file.real(eps_key);
  if (!eps) file.fail(eps_key, "is missing; a number above 0 is needed");
  if (!(*eps > 0)) file.fail(eps_key, fmt::format("= {} must be above 0", format_double(*eps)));
  // Files hold float32: 1e-5 comes as 9.99999975e-6, which is what the reference computes with as well.
  out.norm_eps = *eps;

  const GgufTensor* embedding = file.find_tensor("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2) file.fail("token_embd.weight", "is missing or no matrix");
  out.vocab_size = embedding->shape[0];

  const auto heads = per_layer_integers(file, arch + ".attention.head_count", n_layers, std::nullopt);
  const auto kv_heads = per_layer_integers(file, arch + ".attention.head_count_kv", n_layers, heads);
  const auto d_ff = per_layer_integers(file, arch + ".feed_forward_length", n_layers, std::nullopt);
  for (std::size_t i = 0; i < n_layers; ++i) {
    if (heads[i] % kv_heads[i] != 0) {
      file.fail(arch + ".attention.head_count_kv",
                fmt::format("= {} does not divide head_count = {}", kv_heads[i], heads[i]));
    }
    LayerSpec layer;
    layer.n_heads = heads[i];
    layer.n_kv_heads = kv_heads[i];
    layer.d_head = gguf_head_size(file, arch, out.d_model, heads[i]);
    layer.d_ff = d_ff[i];
    out.layers.push_back(layer);
  }
  return out;
}

PositionSpec read_gguf_rope(const GgufFile& file, const std::string& arch, RopeLayout layout, DecoderConfig& config) {
  PositionSpec position;
  position.layout = layout;
  const std::int64_t d_head = config.layers.front().d_head;
  const std::string width_key = arch + ".rope.dimension_count";
  position.rotary_dim = file.integer(width_key).value_or(d_head);
  if (position.rotary_dim < 2 || position.rotary_dim > d_head || position.rotary_dim % 2 != 0) {
    file.fail(width_key, fmt::format("= {} must be an even number in 2..{}", position.rotary_dim, d_head));
  }
  const std::string base_key = arch + ".rope.freq_base";
  position.rope_base = file.real(base_key).value_or(10000);
  if (!(position.rope_base > 0) || !std::isfinite(position.rope_base)) {
    file.fail(base_key, fmt::format("= {} must be above 0", format_double(position.rope_base)));
  }
  position.scaling = GgufScaling(file, arch, config).read();
  check_declared_position(position, file.where());
  return position;
}

}  // namespace fathom::checkpoint
