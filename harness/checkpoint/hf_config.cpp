#include "harness/checkpoint/hf_config.h"

#include <fmt/format.h>

#include "harness/checkpoint/position_check.h"
#include "harness/core/text_util.h"

namespace fathom::checkpoint {
namespace {

constexpr std::int64_t kHfMaxLayers = 4096;
constexpr std::int64_t kHfMaxSize = std::int64_t{1} << 28;
constexpr std::int64_t kHfMaxContext = std::int64_t{1} << 40;
/// transformers' default where a file has no theta (Llama-2's has none).
constexpr double kHfDefaultTheta = 10000;

Activation read_hf_activation(const JsonObject& config) {
  const std::string name = config.text("hidden_act").value_or("silu");
  if (name == "silu" || name == "swish") return Activation::kSilu;
  if (name == "gelu") return Activation::kGelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast") return Activation::kGeluTanh;
  if (name == "relu") return Activation::kRelu;
  config.fail("hidden_act",
              fmt::format("= '{}' is not supported; supported: silu, gelu, gelu_new, gelu_pytorch_tanh, relu", name));
}

/// Reader of one rope block: collects the options that a method takes.
class HfRopeBlock {
 public:
  HfRopeBlock(const JsonObject& config, const JsonObject& block, std::string name)
      : config_(config), block_(block), name_(std::move(name)) {
    for (const std::string& key : block_.keys()) {
      if (block_.is_object(key)) {
        block_.fail(key, "is an object: blocks per layer type are not supported for this model_type");
      }
    }
    const auto rope_type = block_.text("rope_type");
    const auto type = block_.text("type");
    if (rope_type && type && *rope_type != *type) {
      block_.fail("rope_type", fmt::format("= '{}' contradicts type = '{}'", *rope_type, *type));
    }
    type_ = rope_type ? *rope_type : type.value_or("default");
    if (!rope_type && !type && block_.has("factor")) {
      block_.fail("rope_type", "is missing although there is a factor; say which scaling it belongs to");
    }
    // A top-level value wins over the block's, as in transformers.
    original_ = config_.integer("original_max_position_embeddings");
    const auto inner = block_.integer("original_max_position_embeddings");
    if (!original_) original_ = inner;
    if (original_ && *original_ < 1) {
      block_.fail("original_max_position_embeddings", fmt::format("= {} must be above 0", *original_));
    }
  }

  ScalingSpec read(std::int64_t claimed_context) {
    ScalingSpec spec;
    spec.original_context = original_.value_or(claimed_context);
    if (type_ == "default" || type_ == "mrope") {  // text positions make mrope's three streams equal
      block_.has("mrope_section");
      return spec;
    }
    if (type_ == "linear") {
      read_factor("linear", spec);
    } else if (type_ == "dynamic") {
      read_dynamic(claimed_context, spec);
    } else if (type_ == "yarn") {
      read_yarn(claimed_context, spec);
    } else if (type_ == "llama3") {
      read_llama3(spec);
    } else if (type_ == "longrope" || type_ == "su") {
      read_longrope(claimed_context, spec);
    } else {
      block_.fail("rope_type",
                  fmt::format("= '{}' is not supported; supported: default, linear, dynamic, yarn, llama3, "
                              "longrope (su), mrope",
                              type_));
    }
    spec.options = OptionSource(fmt::format("{} {}", config_.where(), name_), values_);
    return spec;
  }

 private:
  void read_factor(const char* method, ScalingSpec& spec) {
    const auto factor = block_.real("factor");
    if (!factor) block_.fail("factor", fmt::format("is missing; rope_type {} needs one", type_));
    spec.method = method;
    spec.factor = *factor;
    check_factor(*factor);
  }

  void check_factor(double factor) const {
    if (factor < 1) block_.fail("factor", fmt::format("= {} must be at least 1", format_double(factor)));
  }

  void read_dynamic(std::int64_t claimed_context, ScalingSpec& spec) {
    if (const auto alpha = block_.real("alpha")) {  // HunYuan: a static base change under the name of the dynamic one
      if (*alpha < 1) block_.fail("alpha", fmt::format("= {} must be at least 1", format_double(*alpha)));
      spec.method = "ntk";
      spec.factor = *alpha;
      block_.has("factor");
      return;
    }
    read_factor("dynamic", spec);
    spec.original_context = claimed_context;  // transformers never reads the original length here
  }

  void require_original() const {
    if (original_) return;
    block_.fail("original_max_position_embeddings",
                fmt::format("is missing; rope_type {} needs the length the model was trained on (transformers would "
                            "silently take max_position_embeddings)",
                            type_));
  }

  void read_factor_or_ratio(std::int64_t claimed_context, ScalingSpec& spec) {
    const double ratio = static_cast<double>(claimed_context) / static_cast<double>(*original_);
    spec.factor = block_.real("factor").value_or(ratio);
    check_factor(spec.factor);
  }

  /// Copies a number; zero means "left out" in transformers, which tests with `or`.
  void copy_non_zero(const char* key) {
    const auto value = block_.real(key);
    if (value && *value != 0) values_[key] = format_double(*value);
  }

  void read_yarn(std::int64_t claimed_context, ScalingSpec& spec) {
    require_original();
    spec.method = "yarn";
    read_factor_or_ratio(claimed_context, spec);
    for (const char* key : {"beta_fast", "beta_slow", "mscale", "mscale_all_dim"}) copy_non_zero(key);
    if (const auto value = block_.real("attention_factor")) values_["attention_factor"] = format_double(*value);
    if (const auto value = block_.flag("truncate")) values_["truncate"] = *value ? "on" : "off";
  }

  void read_llama3(ScalingSpec& spec) {
    require_original();
    read_factor("llama3", spec);
    for (const char* key : {"low_freq_factor", "high_freq_factor"}) {
      const double value = block_.required_positive(key);
      values_[key] = format_double(value);
    }
  }

  void copy_list(const char* key) {
    const auto list = block_.real_list(key);
    if (!list) block_.fail(key, "is missing; rope_type longrope needs one divisor per channel");
    std::vector<std::string> parts;
    for (const double value : *list) parts.push_back(format_double(value));
    values_[key] = join(parts, ",");
  }

  void read_longrope(std::int64_t claimed_context, ScalingSpec& spec) {
    require_original();
    spec.method = "longrope";
    read_factor_or_ratio(claimed_context, spec);
    copy_list("short_factor");
    copy_list("long_factor");
    if (const auto value = block_.real("attention_factor")) values_["attention_factor"] = format_double(*value);
  }

  const JsonObject& config_;
  const JsonObject& block_;
  std::string name_;
  std::string type_;
  std::optional<std::int64_t> original_;
  std::map<std::string, std::string> values_;
};

/// The block, whichever spelling; nothing if the file has none.
std::optional<JsonObject> find_hf_rope_block(const JsonObject& config, std::string& name) {
  const auto parameters = config.object("rope_parameters");
  const auto scaling = config.object("rope_scaling");
  if (parameters && scaling && parameters->dump() != scaling->dump()) {
    config.fail("rope_parameters", "and rope_scaling differ; keep one of them");
  }
  name = parameters ? "rope_parameters" : "rope_scaling";
  return parameters ? parameters : scaling;
}

std::int64_t hf_rotary_dim(const JsonObject& config, double partial, std::int64_t d_head) {
  if (!(partial > 0) || partial > 1) {
    config.fail("partial_rotary_factor", fmt::format("= {} must be above 0 and at most 1", format_double(partial)));
  }
  const auto rotary_dim =
      static_cast<std::int64_t>(static_cast<double>(d_head) * partial);  // truncates, as Python's int()
  if (rotary_dim < 2 || rotary_dim % 2 != 0) {
    config.fail("partial_rotary_factor", fmt::format("= {} of head_dim = {} rotates {} lanes; an even number is needed",
                                                     format_double(partial), d_head, rotary_dim));
  }
  return rotary_dim;
}

}  // namespace

PositionSpec read_hf_rope(const JsonObject& config, std::int64_t d_head, std::int64_t claimed_context,
                          std::vector<std::string>& warnings) {
  std::string name;
  const std::optional<JsonObject> block = find_hf_rope_block(config, name);
  PositionSpec position;
  double theta = config.positive_or("rope_theta", kHfDefaultTheta);
  double partial = config.real("partial_rotary_factor").value_or(1);
  position.scaling.original_context = claimed_context;
  if (block) {
    theta = block->positive_or("rope_theta", theta);
    partial = block->real("partial_rotary_factor").value_or(partial);
    position.scaling = HfRopeBlock(config, *block, name).read(claimed_context);
    for (const std::string& key : block->unread_keys()) {
      warnings.push_back(
          fmt::format("{}: {}.{} is not used by rope_type {}", config.where(), name, key, position.scaling.method));
    }
  }
  position.rope_base = theta;
  position.rotary_dim = hf_rotary_dim(config, partial, d_head);
  check_declared_position(position, config.where());
  return position;
}

DecoderConfig read_hf_decoder(const JsonObject& config) {
  DecoderConfig out;
  out.name = config.text("_name_or_path").value_or("");
  out.d_model = config.required_integer("hidden_size", 1, kHfMaxSize);
  const std::int64_t n_layers = config.required_integer("num_hidden_layers", 1, kHfMaxLayers);
  out.vocab_size = config.required_integer("vocab_size", 1, kHfMaxSize);
  out.claimed_context = config.required_integer("max_position_embeddings", 1, kHfMaxContext);
  out.norm_eps = config.required_positive("rms_norm_eps");
  out.activation = read_hf_activation(config);
  out.tied_head = config.flag("tie_word_embeddings").value_or(false);

  LayerSpec layer;
  layer.n_heads = config.required_integer("num_attention_heads", 1, kHfMaxSize);
  layer.n_kv_heads = config.integer_or("num_key_value_heads", layer.n_heads, 1, layer.n_heads);
  if (layer.n_heads % layer.n_kv_heads != 0) {
    config.fail("num_key_value_heads",
                fmt::format("= {} does not divide num_attention_heads = {}", layer.n_kv_heads, layer.n_heads));
  }
  if (!config.has("head_dim") && out.d_model % layer.n_heads != 0) {
    config.fail("head_dim", fmt::format("is missing, and hidden_size = {} is no multiple of num_attention_heads = {}",
                                        out.d_model, layer.n_heads));
  }
  layer.d_head = config.integer_or("head_dim", out.d_model / layer.n_heads, 1, kHfMaxSize);
  layer.d_ff = config.required_integer("intermediate_size", 1, kHfMaxSize);
  out.layers.assign(static_cast<std::size_t>(n_layers), layer);
  return out;
}

}  // namespace fathom::checkpoint
