#include "harness/checkpoint/hf_schemes.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "harness/checkpoint/hf_rope.h"
#include "harness/checkpoint/position_check.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::checkpoint {
namespace {

using Warnings = std::vector<std::string>;

std::string option_of(std::int64_t value) {
  return std::to_string(value);
}

void rope_scheme(const HfLayerContext& context, LayerSpec& layer, Warnings& warnings) {
  layer.position.kind = "nope";
  if (!context.rotates) return;
  layer.position =
      read_hf_rope(context.config, context.family, {context.kind, layer.d_head, context.claimed_context}, warnings);
}

/// First-generation Qwen: a base that grows in steps of the length, switched by a key of its own.
void qwen_scheme(const HfLayerContext& context, LayerSpec& layer, Warnings& warnings) {
  rope_scheme(context, layer, warnings);
  if (!context.config.flag("use_dynamic_ntk").value_or(false)) return;
  ScalingSpec& scaling = layer.position.scaling;
  scaling.method = "dynamic";
  scaling.factor = 1;
  scaling.original_context = context.config.required_integer("seq_length", 1, INT64_MAX);
  scaling.options = OptionSource(context.config.where() + " use_dynamic_ntk", {{"alpha", "stepped"}});
}

void alibi_scheme(const HfLayerContext& context, LayerSpec& layer, Warnings&) {
  if (layer.n_heads == 0) context.config.fail("num_attention_heads", "is missing; ALiBi has one slope per head");
  layer.position.kind = "alibi";
}

void mpt_scheme(const HfLayerContext& context, LayerSpec& layer, Warnings& warnings) {
  const auto block = context.config.object("attn_config");
  if (block && !block->flag("alibi").value_or(true)) {
    layer.position.kind = context.config.flag("learned_pos_emb").value_or(true) ? "learned" : "nope";
    return;
  }
  alibi_scheme(context, layer, warnings);
  const double max_bias = block ? block->positive_or("alibi_bias_max", 8) : 8;
  layer.position.options["max_bias"] = format_double(max_bias);
  if (max_bias != 8) {
    warnings.push_back(fmt::format("{}: attn_config.alibi_bias_max = {} is used; transformers takes 8 for every file",
                                   context.config.where(), format_double(max_bias)));
  }
}

/// Falcon divides the bias by sqrt(d_head) together with the scores.
void falcon_scheme(const HfLayerContext& context, LayerSpec& layer, Warnings& warnings) {
  if (!context.config.flag("alibi").value_or(false)) return rope_scheme(context, layer, warnings);
  alibi_scheme(context, layer, warnings);
  layer.position.options["before_scale"] = "on";
}

void learned_scheme(const HfLayerContext& context, LayerSpec& layer, Warnings&) {
  layer.position.kind = "learned";
  if (context.claimed_context > 0) layer.position.options["positions"] = option_of(context.claimed_context);
}

/// OPT's table begins with two rows that no token uses.
void opt_scheme(const HfLayerContext& context, LayerSpec& layer, Warnings& warnings) {
  learned_scheme(context, layer, warnings);
  layer.position.options["offset"] = "2";
}

void sinusoidal_scheme(const HfLayerContext& context, LayerSpec& layer, const char* form) {
  layer.position.kind = "sinusoidal";
  layer.position.options["form"] = form;
  layer.position.options["scale_embedding"] = context.config.flag("scale_embedding").value_or(false) ? "on" : "off";
}

void marian_scheme(const HfLayerContext& context, LayerSpec& layer, Warnings&) {
  sinusoidal_scheme(context, layer, "concatenated");
}

void xglm_scheme(const HfLayerContext& context, LayerSpec& layer, Warnings&) {
  sinusoidal_scheme(context, layer, "tensor2tensor");
  layer.position.options["offset"] = "2";
}

void relative_buckets(const HfLayerContext& context, LayerSpec& layer, const char* shared) {
  const JsonObject& config = context.config;
  layer.position.kind = "t5";
  layer.position.options["buckets"] = option_of(config.required_integer("relative_attention_num_buckets", 2, 1 << 20));
  layer.position.options["max_distance"] =
      option_of(config.required_integer("relative_attention_max_distance", 2, INT64_C(1) << 40));
  layer.position.options["shared"] = shared;
}

void t5_scheme(const HfLayerContext& context, LayerSpec& layer, Warnings&) {
  relative_buckets(context, layer, "on");
}

void umt5_scheme(const HfLayerContext& context, LayerSpec& layer, Warnings&) {
  relative_buckets(context, layer, "off");
}

/// The bias reaches rel_extent tokens back, on window layers the window; only the others scale with the length.
void inkling_scheme(const HfLayerContext& context, LayerSpec& layer, Warnings&) {
  const JsonObject& config = context.config;
  auto& options = layer.position.options;
  layer.position.kind = "inkling";
  options["d_rel"] = option_of(config.required_integer("d_rel", 1, 1 << 20));
  options["extent"] =
      option_of(layer.window ? *layer.window : config.required_integer("rel_extent", 1, INT64_C(1) << 40));
  if (layer.window || !config.has("log_scaling_n_floor")) return;
  options["log_scaling_floor"] = option_of(config.required_integer("log_scaling_n_floor", 1, INT64_C(1) << 40));
  options["log_scaling_alpha"] = format_double(config.real("log_scaling_alpha").value_or(0));
}

using SchemeRule = void (*)(const HfLayerContext&, LayerSpec&, Warnings&);

const std::map<std::string_view, SchemeRule>& scheme_rules() {
  static const std::map<std::string_view, SchemeRule> rules = {
      {"alibi", alibi_scheme},   {"falcon", falcon_scheme}, {"inkling", inkling_scheme}, {"learned", learned_scheme},
      {"marian", marian_scheme}, {"mpt", mpt_scheme},       {"opt", opt_scheme},         {"qwen", qwen_scheme},
      {"rope", rope_scheme},     {"t5", t5_scheme},         {"umt5", umt5_scheme},       {"xglm", xglm_scheme}};
  return rules;
}

std::optional<double> default_scale(const HfLayerContext&, const LayerSpec&) {
  return std::nullopt;
}

std::optional<double> unit_scale(const HfLayerContext&, const LayerSpec&) {
  return 1;
}

/// 1 / d_head: queries and keys are normalised per head.
std::optional<double> inverse_head_scale(const HfLayerContext&, const LayerSpec& layer) {
  return 1 / static_cast<double>(layer.d_head);
}

std::optional<double> query_scalar_scale(const HfLayerContext& context, const LayerSpec&) {
  return 1 / std::sqrt(context.config.required_positive("query_pre_attn_scalar"));
}

std::optional<double> multiplier_scale(const HfLayerContext& context, const LayerSpec&) {
  return context.config.required_positive("attention_multiplier");
}

std::optional<double> mpt_scale(const HfLayerContext& context, const LayerSpec&) {
  const auto block = context.config.object("attn_config");
  if (!block || !block->has("softmax_scale")) return std::nullopt;
  return block->required_positive("softmax_scale");
}

std::optional<double> gpt2_scale(const HfLayerContext& context, const LayerSpec& layer) {
  const bool by_width = context.config.flag("scale_attn_weights").value_or(true);
  const bool by_layer = context.config.flag("scale_attn_by_inverse_layer_idx").value_or(false);
  if (by_width && !by_layer) return std::nullopt;
  const double scale = by_width ? 1 / std::sqrt(static_cast<double>(layer.d_head)) : 1;
  return by_layer ? scale / static_cast<double>(context.index + 1) : scale;
}

using ScaleRule = std::optional<double> (*)(const HfLayerContext&, const LayerSpec&);

const std::map<std::string_view, ScaleRule>& scale_rules() {
  static const std::map<std::string_view, ScaleRule> rules = {
      {"attention_multiplier", multiplier_scale},   {"default", default_scale}, {"gpt2", gpt2_scale},
      {"inverse_head", inverse_head_scale},         {"mpt", mpt_scale},         {"one", unit_scale},
      {"query_pre_attn_scalar", query_scalar_scale}};
  return rules;
}

using rope::QueryTemperature;
using rope::TemperatureKind;

QueryTemperature no_temperature(const HfLayerContext&, const LayerSpec&) {
  return {};
}

/// Layers without rotation only; early files wrote a number for the switch.
QueryTemperature llama4_temperature(const HfLayerContext& context, const LayerSpec&) {
  context.config.has("attn_temperature_tuning");  // a model whose layers all rotate has the key for nothing
  if (context.rotates || context.config.is_off("attn_temperature_tuning")) return {};
  return {TemperatureKind::kLlama4, context.config.required_positive("attn_scale"),
          context.config.required_integer("floor_scale", 1, INT64_C(1) << 40)};
}

QueryTemperature ministral3_temperature(const HfLayerContext& context, const LayerSpec& layer) {
  std::string name;
  const auto block = find_hf_rope_block(context.config, context.family, context.kind, name);
  if (!block || !block->has("llama_4_scaling_beta")) return {};
  return {TemperatureKind::kMinistral3, *block->real("llama_4_scaling_beta"), layer.position.scaling.original_context};
}

QueryTemperature log_n_temperature(const HfLayerContext& context, const LayerSpec&) {
  if (!context.config.flag("use_logn_attn").value_or(false)) return {};
  return {TemperatureKind::kLogN, 0, context.config.required_integer("seq_length", 2, INT64_C(1) << 40)};
}

using TemperatureRule = QueryTemperature (*)(const HfLayerContext&, const LayerSpec&);

const std::map<std::string_view, TemperatureRule>& temperature_rules() {
  static const std::map<std::string_view, TemperatureRule> rules = {{"llama4", llama4_temperature},
                                                                    {"ministral3", ministral3_temperature},
                                                                    {"none", no_temperature},
                                                                    {"qwen_log_n", log_n_temperature}};
  return rules;
}

template <typename Rule>
Rule rule_of(const std::map<std::string_view, Rule>& rules, const std::string& name) {
  const auto found = rules.find(name);
  FATHOM_CHECK(found != rules.end(), "hf_families.json: no rule is called " + name);
  return found->second;
}

}  // namespace

void read_hf_scheme(const HfLayerContext& context, LayerSpec& layer, std::vector<std::string>& warnings) {
  layer.softmax_attention = context.kind != LayerKind::kNoSoftmax;
  if (!layer.softmax_attention) {
    layer.position.kind = "nope";
    return;
  }
  rule_of(scheme_rules(), context.family.scheme)(context, layer, warnings);
  layer.softmax_scale = rule_of(scale_rules(), context.family.softmax_scale)(context, layer);
  layer.position.temperature = rule_of(temperature_rules(), context.family.temperature)(context, layer);
  check_declared_position(layer.position, context.config.where());
}

}  // namespace fathom::checkpoint
