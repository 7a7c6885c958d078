#include "harness/checkpoint/hf_positions.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/checkpoint/hf_family.h"
#include "harness/checkpoint/hf_schemes.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::checkpoint {
namespace {

constexpr std::int64_t kHfMaxLayers = 4096;
constexpr std::int64_t kHfMaxSize = std::int64_t{1} << 28;
constexpr std::int64_t kHfMaxContext = std::int64_t{1} << 40;

/// Keys that change positions in some family. One that the file's own family does not read gets a warning.
constexpr const char* kPositionKeys[] = {"alibi",
                                         "attention_chunk_size",
                                         "attn_temperature_tuning",
                                         "layer_types",
                                         "mla_use_nope",
                                         "no_rope_layers",
                                         "partial_rotary_factor",
                                         "position_embedding_type",
                                         "rope_interleave",
                                         "rope_interleaved",
                                         "rope_local_base_freq",
                                         "rope_parameters",
                                         "rope_pct",
                                         "rope_scaling",
                                         "rope_theta",
                                         "rotary_dim",
                                         "rotary_emb_base",
                                         "rotary_pct",
                                         "sliding_window",
                                         "sliding_window_pattern",
                                         "swa_rope_theta",
                                         "use_dynamic_ntk",
                                         "use_logn_attn",
                                         "use_sliding_window",
                                         "full_attention_interval"};

/// A key under the name it has for this kind of layer, where the file (or the class) has one.
std::string key_for_kind(const JsonObject& config, const KeyNames& names, std::string_view key) {
  const auto found = names.find(key);
  return found != names.end() && config.has(found->second) ? found->second : std::string(key);
}

class HfLayerReader {
 public:
  HfLayerReader(const JsonObject& config, const HfFamily& family, std::int64_t claimed)
      : config_(config), family_(family), claimed_(claimed) {}

  LayerSpec read(LayerKind kind, bool rotates, std::int64_t index, std::vector<std::string>& warnings) const {
    LayerSpec layer;
    read_heads(kind, layer);
    if (kind == LayerKind::kSliding) layer.window = config_.required_integer("sliding_window", 1, kHfMaxContext);
    if (kind == LayerKind::kChunked) layer.chunk = config_.required_integer("attention_chunk_size", 1, kHfMaxContext);
    read_hf_scheme({config_, family_, kind, rotates, index, claimed_}, layer, warnings);
    return layer;
  }

 private:
  void read_heads(LayerKind kind, LayerSpec& layer) const {
    const KeyNames& names = kind == LayerKind::kSliding ? family_.local_names : family_.global_names;
    const std::string heads = key_for_kind(config_, names, "num_attention_heads");
    if (config_.has(heads)) layer.n_heads = config_.required_integer(heads, 1, kHfMaxSize);
    read_kv_heads(names, layer);
    layer.d_head = kind == LayerKind::kNoSoftmax ? optional_width() : head_width(names, layer.n_heads);
  }

  void read_kv_heads(const KeyNames& names, LayerSpec& layer) const {
    layer.n_kv_heads = layer.n_heads;
    if (family_.heads == "mla") return;  // every head has its own keys once the latent is expanded
    if (family_.heads == "falcon") return read_falcon_kv_heads(layer);
    const std::string key = key_for_kind(config_, names, "num_key_value_heads");
    if (!config_.has(key)) return;
    layer.n_kv_heads = config_.required_integer(key, 1, layer.n_heads == 0 ? kHfMaxSize : layer.n_heads);
    if (layer.n_heads % layer.n_kv_heads != 0) {
      config_.fail(key, fmt::format("= {} does not divide num_attention_heads = {}", layer.n_kv_heads, layer.n_heads));
    }
  }

  void read_falcon_kv_heads(LayerSpec& layer) const {
    if (config_.flag("new_decoder_architecture").value_or(false)) {
      layer.n_kv_heads = config_.integer_or("num_kv_heads", layer.n_heads, 1, layer.n_heads);
    } else if (config_.flag("multi_query").value_or(false)) {
      layer.n_kv_heads = 1;
    }
  }

  /// Layers without softmax have no head width that matters; whatever the file says is shown.
  std::int64_t optional_width() const { return config_.integer_or("head_dim", 0, 0, kHfMaxSize); }

  std::int64_t head_width(const KeyNames& names, std::int64_t n_heads) const {
    if (family_.heads == "mla") {
      return config_.required_integer("qk_nope_head_dim", 0, kHfMaxSize) +
             config_.required_integer("qk_rope_head_dim", 1, kHfMaxSize);
    }
    const std::string key = key_for_kind(config_, names, "head_dim");
    if (config_.has(key)) return config_.required_integer(key, 1, kHfMaxSize);
    if (n_heads == 0 || !config_.has("hidden_size")) {
      config_.fail("head_dim", "is missing, and without hidden_size and num_attention_heads nothing gives the width");
    }
    const std::int64_t d_model = config_.required_integer("hidden_size", 1, kHfMaxSize);
    if (d_model % n_heads != 0) {
      config_.fail(
          "head_dim",
          fmt::format("is missing, and hidden_size = {} is no multiple of num_attention_heads = {}", d_model, n_heads));
    }
    return d_model / n_heads;
  }

  const JsonObject& config_;
  const HfFamily& family_;
  std::int64_t claimed_;
};

/// A file with position keys only may leave the sizes open.
std::int64_t read_layer_count(const JsonObject& config, std::vector<std::string>& warnings) {
  if (!config.has("num_attention_heads")) {
    warnings.push_back(config.where() + ": num_attention_heads is missing; the number of heads is unknown");
  }
  if (config.has("num_hidden_layers")) return config.required_integer("num_hidden_layers", 1, kHfMaxLayers);
  if (const auto n = listed_layer_count(config)) return std::clamp<std::int64_t>(*n, 1, kHfMaxLayers);
  warnings.push_back(config.where() + ": num_hidden_layers is missing; one layer is shown");
  return 1;
}

/// Keys of kPositionKeys that are set and that nobody asked for.
std::vector<std::string> unread_position_keys(const JsonObject& config) {
  const std::vector<std::string> unread = config.unread_keys();
  std::vector<std::string> out;
  for (const char* key : kPositionKeys) {
    if (!config.is_off(key) && std::find(unread.begin(), unread.end(), key) != unread.end()) out.emplace_back(key);
  }
  return out;
}

/// Files may hold these in the spelling of both versions, of which one is read.
bool has_two_spellings(const std::string& key) {
  return starts_with(key, "rope_theta") || key == "rope_local_base_freq" || starts_with(key, "rope_scaling") ||
         starts_with(key, "rope_parameters") || key == "partial_rotary_factor" || key == "rope_pct" ||
         key == "rotary_pct" || key == "rotary_emb_base";
}

void warn_mostly_nope(const DecoderConfig& config, const JsonObject& json, std::vector<std::string>& warnings) {
  const auto n = std::count_if(config.layers.begin(), config.layers.end(),
                               [](const LayerSpec& layer) { return layer.position.kind == "nope"; });
  if (2 * n <= config.n_layers()) return;
  warnings.push_back(
      fmt::format("{}: no_rope_layers leaves {} of {} layers without rotation; 1 means that RoPE is "
                  "applied, 0 that it is not",
                  json.where(), n, config.n_layers()));
}

/// Layers of one kind say the same.
void remove_repeated(std::vector<std::string>& warnings) {
  std::vector<std::string> kept;
  for (const std::string& warning : warnings) {
    if (std::find(kept.begin(), kept.end(), warning) == kept.end()) kept.push_back(warning);
  }
  warnings = std::move(kept);
}

/// Length of training, where a scaling method names the one it started from.
std::optional<std::int64_t> declared_trained_context(const DecoderConfig& config) {
  for (const LayerSpec& layer : config.layers) {
    const ScalingSpec& scaling = layer.position.scaling;
    if (layer.position.rotary_dim == 0) continue;
    if (scaling.method == "yarn" || scaling.method == "llama3" || scaling.method == "longrope") {
      return scaling.original_context;
    }
  }
  return std::nullopt;
}

void read_layers(const JsonObject& config, const HfFamily& family, std::int64_t n_layers, DecoderConfig& out) {
  const HfLayerReader reader(config, family, out.claimed_context);
  std::vector<LayerKind> kinds = read_layer_kinds(config, family.layers, n_layers);
  if (family.ignores_layer_types && config.has("layer_types") &&
      kinds != layer_kinds_of_rule(config, family.layers, n_layers)) {
    config.fail("layer_types", fmt::format("says something else than model_type '{}' does, which transformers lets go "
                                           "by its own rule. Remove the key or correct model_type",
                                           family.model_type));
  }
  if (family.full_layers_slide && config.has("sliding_window"))
    std::replace(kinds.begin(), kinds.end(), LayerKind::kFull, LayerKind::kSliding);
  const std::vector<bool> rotating = read_rotating_layers(config, family.rotates, kinds);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    out.layers.push_back(reader.read(kinds[i], rotating[i], static_cast<std::int64_t>(i), out.warnings));
  }
}

const HfFamily& required_family(const JsonObject& config, const std::string& model_type) {
  if (const HfFamily* family = find_hf_family(model_type)) return *family;
  const auto near = nearest_name(model_type, hf_model_types());
  config.fail("model_type",
              fmt::format("= '{}' is not supported{}; known: {}", model_type,
                          near ? fmt::format("; did you mean '{}'?", *near) : "", join(hf_model_types(), ", ")));
}

}  // namespace

JsonObject hf_decoder_object(const JsonObject& config, std::string& model_type) {
  model_type = config.required_text("model_type");
  const HfFamily& family = required_family(config, model_type);
  if (family.text_model_type.empty() && !config.has("text_config")) return config;
  const auto text = config.object("text_config");
  if (!text) config.fail("text_config", fmt::format("is missing; model_type {} keeps its decoder there", model_type));
  const std::string fallback = family.text_model_type.empty() ? model_type : family.text_model_type;
  model_type = text->text("model_type").value_or(fallback);
  return *text;
}

DecoderConfig resolve_hf_positions(const JsonObject& file, std::vector<std::string>* unread) {
  std::string model_type;
  const JsonObject object = hf_decoder_object(file, model_type);
  const HfFamily& family = required_family(object, model_type);
  JsonObject config = object.with_names(family.names);
  if (family.defaults) config = config.with_defaults(*family.defaults);

  for (const auto& [key, value] : family.only) {
    const auto given = config.text(key);
    if (given && *given != value) config.fail(key, fmt::format("= '{}' is not supported; only {} is", *given, value));
  }

  DecoderConfig out;
  out.architecture = model_type;
  out.name = file.text("_name_or_path").value_or("");
  out.d_model = config.integer_or("hidden_size", 0, 0, kHfMaxSize);
  if (config.has("max_position_embeddings")) {
    out.claimed_context = config.required_integer("max_position_embeddings", 1, kHfMaxContext);
  }
  read_layers(config, family, read_layer_count(config, out.warnings), out);
  remove_repeated(out.warnings);
  if (family.rotates == "no_rope_layers") warn_mostly_nope(out, config, out.warnings);
  out.trained_context = declared_trained_context(out);
  for (const std::string& key : unread_position_keys(config)) {
    if (unread != nullptr && !has_two_spellings(key)) {
      unread->push_back(key);
    } else {
      out.warnings.push_back(fmt::format("{}: {} is not used by model_type {}", config.where(), key, model_type));
    }
  }
  return out;
}

}  // namespace fathom::checkpoint
