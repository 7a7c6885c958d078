#include "harness/checkpoint/layer_patterns.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/core/error.h"

namespace fathom::checkpoint {
namespace {

using Kinds = std::vector<LayerKind>;
using Rotating = std::vector<bool>;

constexpr std::int64_t kMaxInterval = 4096;

/// Entries of `layer_types` and their older spellings.
const std::map<std::string, LayerKind, std::less<>>& layer_type_names() {
  static const std::map<std::string, LayerKind, std::less<>> names = {
      {"full_attention", LayerKind::kFull},
      {"attention", LayerKind::kFull},
      {"hybrid", LayerKind::kFull},
      {"indexed_attention", LayerKind::kFull},
      {"deepseek_sparse_attention", LayerKind::kFull},
      {"minimax_m3_sparse", LayerKind::kFull},
      {"compressed_sparse_attention", LayerKind::kFull},
      {"heavily_compressed_attention", LayerKind::kFull},
      {"sliding_attention", LayerKind::kSliding},
      {"hybrid_sliding", LayerKind::kSliding},
      {"chunked_attention", LayerKind::kChunked},
      {"linear_attention", LayerKind::kNoSoftmax},
      {"mamba", LayerKind::kNoSoftmax},
      {"mamba2", LayerKind::kNoSoftmax},
      {"recurrent", LayerKind::kNoSoftmax},
      {"conv", LayerKind::kNoSoftmax},
      {"moe", LayerKind::kNoSoftmax},
      {"mlp", LayerKind::kNoSoftmax}};
  return names;
}

std::size_t as_size(std::int64_t n) {
  return static_cast<std::size_t>(n);
}

void check_entries(const JsonObject& config, std::string_view key, std::size_t n_entries, std::int64_t n_layers) {
  if (n_entries == as_size(n_layers)) return;
  config.fail(key, fmt::format("has {} entries for {} layers", n_entries, n_layers));
}

/// Kind of every layer from its number.
template <typename Choose>
Kinds kinds_by_index(std::int64_t n_layers, Choose choose) {
  Kinds out;
  for (std::int64_t i = 0; i < n_layers; ++i) out.push_back(choose(i));
  return out;
}

Kinds all_of(LayerKind kind, std::int64_t n_layers) {
  return Kinds(as_size(n_layers), kind);
}

bool has_window(const JsonObject& config) {
  const bool switched_on = config.flag("use_sliding_window").value_or(true);
  return config.has("sliding_window") && switched_on;
}

/// The same for classes whose switch is off where the file is silent.
bool has_window_switched_on(const JsonObject& config) {
  return config.has("sliding_window") && config.flag("use_sliding_window").value_or(false);
}

/// Also the rule of classes that go by layer_types alone.
Kinds full_layers(const JsonObject&, std::int64_t n_layers) {
  return all_of(LayerKind::kFull, n_layers);
}

Kinds no_softmax_layers(const JsonObject&, std::int64_t n_layers) {
  return all_of(LayerKind::kNoSoftmax, n_layers);
}

Kinds all_sliding_if_used(const JsonObject& config, std::int64_t n_layers) {
  return all_of(has_window(config) ? LayerKind::kSliding : LayerKind::kFull, n_layers);
}

/// A class without the switch has its window on; a file that means it off is not for us to guess about.
void refuse_switched_off_window(const JsonObject& config) {
  if (!config.has("sliding_window") || config.flag("use_sliding_window").value_or(true)) return;
  config.fail("use_sliding_window",
              fmt::format("= false beside sliding_window: transformers ignores this switch in model_type '{}' and the "
                          "window counts. Remove one of the two",
                          config.text("model_type").value_or("")));
}

Kinds all_sliding_layers(const JsonObject& config, std::int64_t n_layers) {
  refuse_switched_off_window(config);
  return all_sliding_if_used(config, n_layers);
}

/// A text such as "LLLG" (EXAONE) repeated: L a window, G everything.
Kinds kinds_from_letters(const JsonObject& config, const std::string& letters, std::int64_t n_layers) {
  if (letters.empty() || letters.find_first_not_of("LG") != std::string::npos) {
    config.fail("sliding_window_pattern", fmt::format("= '{}' must be made of L and G", letters));
  }
  return kinds_by_index(n_layers, [&](std::int64_t i) {
    return letters[as_size(i) % letters.size()] == 'G' ? LayerKind::kFull : LayerKind::kSliding;
  });
}

/// Layer i sees everything iff (i + 1) % sliding_window_pattern == 0.
Kinds window_pattern_layers(const JsonObject& config, std::int64_t n_layers) {
  refuse_switched_off_window(config);
  if (!has_window(config)) return all_of(LayerKind::kFull, n_layers);
  if (config.is_text("sliding_window_pattern")) {
    return kinds_from_letters(config, *config.text("sliding_window_pattern"), n_layers);
  }
  const std::int64_t n = config.required_integer("sliding_window_pattern", 1, kMaxInterval);
  return kinds_by_index(n_layers,
                        [n](std::int64_t i) { return (i + 1) % n == 0 ? LayerKind::kFull : LayerKind::kSliding; });
}

/// Qwen: layers from max_window_layers on slide, if use_sliding_window says so.
Kinds max_window_layers(const JsonObject& config, std::int64_t n_layers) {
  const bool slides = has_window_switched_on(config);
  const std::int64_t first = config.integer_or("max_window_layers", n_layers, 0, INT64_MAX);
  return kinds_by_index(n_layers,
                        [&](std::int64_t i) { return slides && i >= first ? LayerKind::kSliding : LayerKind::kFull; });
}

/// Qwen2-MoE: every second one of the first max_window_layers layers slides, if use_sliding_window says so.
Kinds first_window_layers(const JsonObject& config, std::int64_t n_layers) {
  const bool slides = has_window_switched_on(config);
  const std::int64_t end = config.integer_or("max_window_layers", n_layers, 0, INT64_MAX);
  return kinds_by_index(n_layers, [&](std::int64_t i) {
    return slides && i % 2 == 0 && i < end ? LayerKind::kSliding : LayerKind::kFull;
  });
}

/// A list of 0 and 1, one entry per layer; nothing if absent.
std::optional<std::vector<std::int64_t>> zero_one_list(const JsonObject& config, std::string_view key,
                                                       std::int64_t n_layers) {
  auto list = config.integer_list(key);
  if (!list) return std::nullopt;
  check_entries(config, key, list->size(), n_layers);
  for (const std::int64_t value : *list) {
    if (value != 0 && value != 1) config.fail(key, fmt::format("holds {}, which is neither 0 nor 1", value));
  }
  return list;
}

/// MiMo-V2: 0 everything, 1 a window; without the list the first layer and every sixth see everything.
Kinds hybrid_layer_pattern(const JsonObject& config, std::int64_t n_layers) {
  const auto pattern = zero_one_list(config, "hybrid_layer_pattern", n_layers);
  return kinds_by_index(n_layers, [&](std::int64_t i) {
    const bool full = pattern ? (*pattern)[as_size(i)] == 0 : i == 0 || (i + 1) % 6 == 0;
    return full ? LayerKind::kFull : LayerKind::kSliding;
  });
}

/// MiniMax-Text-01: 1 softmax, 0 lightning attention; without the list every second layer is softmax, the first one of
/// them.
Kinds attn_type_list(const JsonObject& config, std::int64_t n_layers) {
  const auto types = zero_one_list(config, "attn_type_list", n_layers);
  return kinds_by_index(n_layers, [&](std::int64_t i) {
    const bool softmax = types ? (*types)[as_size(i)] == 1 : i % 2 == 0;
    return softmax ? LayerKind::kFull : LayerKind::kNoSoftmax;
  });
}

/// Qwen3-Next: softmax iff (i + 1) % full_attention_interval == 0.
Kinds full_attention_interval(const JsonObject& config, std::int64_t n_layers) {
  const std::int64_t n = config.required_integer("full_attention_interval", 1, kMaxInterval);
  return kinds_by_index(n_layers,
                        [n](std::int64_t i) { return (i + 1) % n == 0 ? LayerKind::kFull : LayerKind::kNoSoftmax; });
}

/// Nemotron-H: one letter per layer, * attention, M Mamba, - an MLP, E experts.
Kinds hybrid_override_pattern(const JsonObject& config, std::int64_t n_layers) {
  const std::string letters = config.required_text("hybrid_override_pattern");
  check_entries(config, "hybrid_override_pattern", letters.size(), n_layers);
  if (const std::size_t at = letters.find_first_not_of("*M-E"); at != std::string::npos) {
    config.fail("hybrid_override_pattern", fmt::format("holds '{}'; known: *, M, -, E", letters[at]));
  }
  return kinds_by_index(
      n_layers, [&](std::int64_t i) { return letters[as_size(i)] == '*' ? LayerKind::kFull : LayerKind::kNoSoftmax; });
}

/// Jamba: softmax iff i % attn_layer_period == attn_layer_offset.
Kinds attention_period(const JsonObject& config, std::int64_t n_layers) {
  const std::int64_t period = config.required_integer("attn_layer_period", 1, kMaxInterval);
  const std::int64_t offset = config.required_integer("attn_layer_offset", 0, period - 1);
  return kinds_by_index(
      n_layers, [&](std::int64_t i) { return i % period == offset ? LayerKind::kFull : LayerKind::kNoSoftmax; });
}

/// Layers of a list of numbers are `listed`, the others `other`; \param first  number of the first layer in the list.
Kinds kinds_from_list(const JsonObject& config, std::string_view key, std::int64_t first, std::int64_t n_layers,
                      LayerKind listed, LayerKind other) {
  Kinds out = all_of(other, n_layers);
  const auto numbers = config.integer_list(key);
  for (const std::int64_t number : numbers.value_or(std::vector<std::int64_t>{})) {
    if (number < first || number >= first + n_layers) {
      config.fail(key, fmt::format("names layer {}; layers are {}..{}", number, first, first + n_layers - 1));
    }
    out[as_size(number - first)] = listed;
  }
  return out;
}

/// Kimi Linear counts from 1: full_attn_layers are softmax.
Kinds linear_attn_config(const JsonObject& config, std::int64_t n_layers) {
  const auto block = config.object("linear_attn_config");
  if (!block) config.fail("linear_attn_config", "is missing; its full_attn_layers say which layers are softmax");
  if (!block->has("full_attn_layers")) block->fail("full_attn_layers", "is missing");
  return kinds_from_list(*block, "full_attn_layers", 1, n_layers, LayerKind::kFull, LayerKind::kNoSoftmax);
}

Kinds attn_layer_indices(const JsonObject& config, std::int64_t n_layers) {
  return kinds_from_list(config, "attn_layer_indices", 0, n_layers, LayerKind::kFull, LayerKind::kNoSoftmax);
}

Kinds full_attn_idxs(const JsonObject& config, std::int64_t n_layers) {
  if (!config.has("full_attn_idxs")) return all_of(LayerKind::kFull, n_layers);
  return kinds_from_list(config, "full_attn_idxs", 0, n_layers, LayerKind::kFull, LayerKind::kNoSoftmax);
}

/// Inkling: the listed layers see a window; without the list all but every sixth.
Kinds local_layer_ids(const JsonObject& config, std::int64_t n_layers) {
  if (config.has("local_layer_ids")) {
    return kinds_from_list(config, "local_layer_ids", 0, n_layers, LayerKind::kSliding, LayerKind::kFull);
  }
  return kinds_by_index(n_layers,
                        [](std::int64_t i) { return (i + 1) % 6 == 0 ? LayerKind::kFull : LayerKind::kSliding; });
}

/// RecurrentGemma: block_types repeated; its attention is always local.
Kinds block_types(const JsonObject& config, std::int64_t n_layers) {
  auto types =
      config.text_list("block_types").value_or(std::vector<std::string>{"recurrent", "recurrent", "attention"});
  if (types.empty()) config.fail("block_types", "is empty");
  return kinds_by_index(n_layers, [&](std::int64_t i) {
    return types[as_size(i) % types.size()] == "recurrent" ? LayerKind::kNoSoftmax : LayerKind::kSliding;
  });
}

/// DeepSeek-V4: ratio 0 is a window layer, others attend to compressed keys beside a window; without the list all are
/// of the second sort.
Kinds compress_ratios(const JsonObject& config, std::int64_t n_layers) {
  const auto ratios = config.integer_list("compress_ratios");
  if (ratios && ratios->size() < as_size(n_layers)) check_entries(config, "compress_ratios", ratios->size(), n_layers);
  return kinds_by_index(n_layers, [&](std::int64_t i) {
    return ratios && (*ratios)[as_size(i)] == 0 ? LayerKind::kSliding : LayerKind::kFull;
  });
}

/// 1 means that RoPE is applied, whatever the name says; an empty list stands for the rule of the interval.
Rotating no_rope_layers(const JsonObject& config, std::int64_t n_layers) {
  Rotating out;
  if (!config.is_off("no_rope_layers")) {
    const auto list = *zero_one_list(config, "no_rope_layers", n_layers);
    for (const std::int64_t value : list) out.push_back(value == 1);
    return out;
  }
  config.has("no_rope_layers");
  const std::int64_t n = config.required_integer("no_rope_layer_interval", 1, kMaxInterval);
  for (std::int64_t i = 0; i < n_layers; ++i) out.push_back((i + 1) % n != 0);
  return out;
}

/// Llama-4: rotating layers attend within chunks of attention_chunk_size, the others to everything.
Kinds chunked_where_rotated(const JsonObject& config, std::int64_t n_layers) {
  const Rotating rotating = no_rope_layers(config, n_layers);
  const bool chunks = config.has("attention_chunk_size");
  return kinds_by_index(n_layers, [&](std::int64_t i) {
    return chunks && rotating[as_size(i)] ? LayerKind::kChunked : LayerKind::kFull;
  });
}

/// SmolLM3: layers without rotation slide, if use_sliding_window says so.
Kinds sliding_where_not_rotated(const JsonObject& config, std::int64_t n_layers) {
  const Rotating rotating = no_rope_layers(config, n_layers);
  const bool slides = has_window_switched_on(config);
  return kinds_by_index(n_layers, [&](std::int64_t i) {
    return slides && !rotating[as_size(i)] ? LayerKind::kSliding : LayerKind::kFull;
  });
}

/// Keys that layer_types makes superfluous.
constexpr const char* kReplacedKeys[] = {"attention_chunk_size", "full_attention_interval", "sliding_window",
                                         "sliding_window_pattern", "use_sliding_window"};

Kinds kinds_from_layer_types(const JsonObject& config, std::int64_t n_layers) {
  for (const char* key : kReplacedKeys) config.has(key);
  const auto types = *config.text_list("layer_types");
  check_entries(config, "layer_types", types.size(), n_layers);
  Kinds out;
  for (const std::string& type : types) {
    const auto found = layer_type_names().find(type);
    if (found == layer_type_names().end()) config.fail("layer_types", fmt::format("holds unknown '{}'", type));
    out.push_back(found->second);
  }
  return out;
}

using KindRule = Kinds (*)(const JsonObject&, std::int64_t);

const std::map<std::string_view, KindRule>& kind_rules() {
  static const std::map<std::string_view, KindRule> rules = {{"all_sliding", all_sliding_layers},
                                                             {"all_sliding_if_used", all_sliding_if_used},
                                                             {"first_window_layers", first_window_layers},
                                                             {"sliding_where_not_rotated", sliding_where_not_rotated},
                                                             {"attention_period", attention_period},
                                                             {"attn_layer_indices", attn_layer_indices},
                                                             {"attn_type_list", attn_type_list},
                                                             {"block_types", block_types},
                                                             {"chunked_where_rotated", chunked_where_rotated},
                                                             {"compress_ratios", compress_ratios},
                                                             {"full", full_layers},
                                                             {"full_attention_interval", full_attention_interval},
                                                             {"full_attn_idxs", full_attn_idxs},
                                                             {"hybrid_layer_pattern", hybrid_layer_pattern},
                                                             {"hybrid_override_pattern", hybrid_override_pattern},
                                                             {"layer_types", full_layers},
                                                             {"linear_attn_config", linear_attn_config},
                                                             {"local_layer_ids", local_layer_ids},
                                                             {"max_window_layers", max_window_layers},
                                                             {"no_softmax", no_softmax_layers},
                                                             {"window_pattern", window_pattern_layers}};
  return rules;
}

Rotating where(const Kinds& kinds, LayerKind kind) {
  Rotating out;
  for (const LayerKind each : kinds) out.push_back(each == kind);
  return out;
}

Rotating softmax_layers(const JsonObject&, const Kinds& kinds) {
  Rotating out = where(kinds, LayerKind::kNoSoftmax);
  out.flip();
  return out;
}

Rotating no_layers(const JsonObject&, const Kinds& kinds) {
  return Rotating(kinds.size(), false);
}

/// Cohere2: layers with a window rotate, those that see everything have no positions.
Rotating sliding_layers(const JsonObject&, const Kinds& kinds) {
  return where(kinds, LayerKind::kSliding);
}

/// EXAONE-4, AFMoE: the same, but a model without any window rotates everywhere.
Rotating sliding_layers_if_any(const JsonObject& config, const Kinds& kinds) {
  return has_window(config) ? where(kinds, LayerKind::kSliding) : softmax_layers(config, kinds);
}

Rotating listed_layers(const JsonObject& config, const Kinds& kinds) {
  return no_rope_layers(config, static_cast<std::int64_t>(kinds.size()));
}

/// Granite hybrids: position_embedding_type is "rope" or absent.
Rotating by_embedding_type(const JsonObject& config, const Kinds& kinds) {
  const std::string type = config.text("position_embedding_type").value_or("nope");
  if (type == "rope") return softmax_layers(config, kinds);
  if (type != "nope") config.fail("position_embedding_type", fmt::format("= '{}' is unknown; known: rope, nope", type));
  return no_layers(config, kinds);
}

/// Kimi: the qk_rope_head_dim lanes exist, but mla_use_nope leaves them unrotated.
Rotating by_mla_use_nope(const JsonObject& config, const Kinds& kinds) {
  return config.flag("mla_use_nope").value_or(false) ? no_layers(config, kinds) : softmax_layers(config, kinds);
}

using RotationRule = Rotating (*)(const JsonObject&, const Kinds&);

const std::map<std::string_view, RotationRule>& rotation_rules() {
  static const std::map<std::string_view, RotationRule> rules = {{"all", softmax_layers},
                                                                 {"mla_use_nope", by_mla_use_nope},
                                                                 {"no_rope_layers", listed_layers},
                                                                 {"none", no_layers},
                                                                 {"position_embedding_type", by_embedding_type},
                                                                 {"sliding", sliding_layers},
                                                                 {"sliding_if_any", sliding_layers_if_any}};
  return rules;
}

}  // namespace

std::string_view to_string(LayerKind kind) {
  switch (kind) {
    case LayerKind::kFull:
      return "full";
    case LayerKind::kSliding:
      return "sliding";
    case LayerKind::kChunked:
      return "chunked";
    case LayerKind::kNoSoftmax:
      return "no_softmax";
  }
  return "";
}

std::vector<LayerKind> layer_kinds_of_rule(const JsonObject& config, std::string_view rule, std::int64_t n_layers) {
  const auto found = kind_rules().find(rule);
  FATHOM_CHECK(found != kind_rules().end(), "no rule of layers is called " + std::string(rule));
  return found->second(config, n_layers);
}

std::vector<LayerKind> read_layer_kinds(const JsonObject& config, std::string_view rule, std::int64_t n_layers) {
  // A class that knows no layer types ignores the list; that the file has one is then told as of any key.
  const bool goes_by_list = rule != "full" && config.has("layer_types");
  return goes_by_list ? kinds_from_layer_types(config, n_layers) : layer_kinds_of_rule(config, rule, n_layers);
}

std::optional<std::int64_t> listed_layer_count(const JsonObject& config) {
  if (const auto types = config.text_list("layer_types")) return static_cast<std::int64_t>(types->size());
  if (const auto letters = config.text("hybrid_override_pattern")) return static_cast<std::int64_t>(letters->size());
  return std::nullopt;
}

std::vector<bool> read_rotating_layers(const JsonObject& config, std::string_view rule,
                                       const std::vector<LayerKind>& kinds) {
  const auto found = rotation_rules().find(rule);
  FATHOM_CHECK(found != rotation_rules().end(), "no rule of rotation is called " + std::string(rule));
  return found->second(config, kinds);
}

}  // namespace fathom::checkpoint
