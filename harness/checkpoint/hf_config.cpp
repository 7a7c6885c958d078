#include "harness/checkpoint/hf_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/checkpoint/hf_family.h"
#include "harness/checkpoint/hf_positions.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::checkpoint {
namespace {

constexpr std::int64_t kHfDecoderMaxSize = std::int64_t{1} << 28;
constexpr std::int64_t kHfDecoderMaxLayers = 4096;
constexpr std::int64_t kHfDecoderMaxContext = std::int64_t{1} << 40;

/// Keys by which some family changes what it computes. In a file of a family that does not read them, transformers
/// would ignore them in silence.
constexpr const char* kComputationKeys[] = {"add_cross_attention",
                                            "apply_residual_connection_post_layernorm",
                                            "attention_bias",
                                            "attention_multiplier",
                                            "attention_out_bias",
                                            "attention_sink_bias",
                                            "attn_config",
                                            "attn_logit_softcapping",
                                            "attn_output_gate",
                                            "bias",
                                            "clip_qkv",
                                            "cross_attention_layers",
                                            "decoder_sparse_step",
                                            "dim_model_base",
                                            "embedding_multiplier",
                                            "final_logit_softcapping",
                                            "first_k_dense_replace",
                                            "is_encoder_decoder",
                                            "kv_lora_rank",
                                            "layer_norm_elementwise_affine",
                                            "logit_scale",
                                            "logits_scaling",
                                            "mlp_bias",
                                            "mlp_only_layers",
                                            "multi_query",
                                            "n_routed_experts",
                                            "n_shared_experts",
                                            "new_decoder_architecture",
                                            "num_experts",
                                            "num_kv_shared_layers",
                                            "num_local_experts",
                                            "parallel_attn",
                                            "q_lora_rank",
                                            "qk_layernorm",
                                            "qk_norm",
                                            "quantization_config",
                                            "query_pre_attn_scalar",
                                            "residual_multiplier",
                                            "scale_depth",
                                            "scale_emb",
                                            "scale_embedding",
                                            "shared_intermediate_size",
                                            "slow_but_exact",
                                            "swiglu_limit",
                                            "use_bias",
                                            "use_bidirectional_attention",
                                            "use_parallel_residual",
                                            "use_post_norm",
                                            "use_qk_norm",
                                            "use_qkv_bias"};

JsonObject decoder_json(const JsonObject& file) {
  const HfFamily* family = find_hf_family(file.required_text("model_type"));
  JsonObject named = family == nullptr ? file : file.with_names(family->names);
  return family != nullptr && family->defaults ? named.with_defaults(*family->defaults) : named;
}

/// "GPT2" of GPT2LMHeadModel.
std::string class_stem(const std::string& class_name) {
  for (const std::string_view end : {"ForCausalLM", "LMHeadModel", "ForConditionalGeneration"}) {
    if (ends_with(class_name, end)) return class_name.substr(0, class_name.size() - end.size());
  }
  return class_name;
}

/// Files that the class without a head wrote, and T5's under their first name, serve as well: a head is asked for where
/// it is not tied.
void check_class(const JsonObject& config, const std::string& class_name) {
  const auto classes = config.text_list("architectures");
  if (!classes || classes->empty()) return;
  const std::string stem = class_stem(class_name);
  for (const std::string& serves : {class_name, stem + "Model", stem + "WithLMHeadModel"}) {
    if (std::find(classes->begin(), classes->end(), serves) != classes->end()) return;
  }
  config.fail("architectures", fmt::format("= {} does not belong to model_type '{}', whose class is {}",
                                           join(*classes, ", "), config.required_text("model_type"), class_name));
}

/// What rotates of a head. A share that the class does not know would be ignored by transformers, and other programs
/// go by it: which of the two a file means is not for us to guess.
void check_whole_heads(const JsonObject& config, const std::vector<LayerSpec>& layers) {
  const HfFamily* family = find_hf_family(config.required_text("model_type"));
  if (family == nullptr || !family->whole_head) return;
  for (const LayerSpec& layer : layers) {
    if (layer.position.rotary_dim == 0 || layer.position.rotary_dim == layer.d_head) continue;
    config.fail("partial_rotary_factor",
                fmt::format("rotates {} of {} lanes, but transformers rotates whole heads of model_type '{}' and "
                            "ignores the key. Remove it or correct model_type",
                            layer.position.rotary_dim, layer.d_head, config.required_text("model_type")));
  }
}

bool has_positions_of_its_own(const JsonObject& config) {
  const HfFamily* family = find_hf_family(config.required_text("model_type"));
  return family == nullptr || (family->scheme != "alibi" && family->scheme != "t5" && family->layers != "no_softmax");
}

}  // namespace

Activation parse_hf_activation(const JsonObject& config, std::string_view key, const std::string& name) {
  if (name == "silu" || name == "swish") return Activation::kSilu;
  if (name == "gelu" || name == "gelu_python") return Activation::kGelu;
  for (const char* tanh_form : {"gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_accurate"}) {
    if (name == tanh_form) return Activation::kGeluTanh;
  }
  if (name == "relu") return Activation::kRelu;
  if (name == "relu2") return Activation::kReluSquared;
  config.fail(
      key,
      fmt::format("= '{}' is not supported; supported: silu, gelu, gelu_new, gelu_pytorch_tanh, relu, relu2", name));
}

HfDecoder::HfDecoder(const JsonObject& file, const HfKeys& keys) : json_(decoder_json(file)) {
  check_class(json_, keys.class_name);
  for (const char* key : {"hidden_size", "num_attention_heads"}) size(key);
  json_.required_integer("num_hidden_layers", 1, kHfDecoderMaxLayers);
  if (has_positions_of_its_own(json_)) json_.required_integer("max_position_embeddings", 1, kHfDecoderMaxContext);
  config = resolve_hf_positions(file, &unread_positions_);
  check_whole_heads(json_, config.layers);
  config.vocab_size = size("vocab_size");
  config.norm_eps = keys.default_norm_eps > 0 ? json_.positive_or(keys.norm_eps, keys.default_norm_eps)
                                              : json_.required_positive(keys.norm_eps);
  config.activation =
      parse_hf_activation(json_, keys.activation, json_.text(keys.activation).value_or(keys.default_activation));
  config.tied_head = flag("tie_word_embeddings", keys.tied);
  const std::int64_t d_ff = keys.default_d_ff > 0
                                ? json_.integer_or(keys.d_ff, keys.default_d_ff * config.d_model, 1, kHfDecoderMaxSize)
                                : size(keys.d_ff);
  for (LayerSpec& layer : config.layers) layer.d_ff = d_ff;
}

std::int64_t HfDecoder::size(const char* key) const {
  return json_.required_integer(key, 1, kHfDecoderMaxSize);
}

void HfDecoder::must_be(const char* key, bool value) const {
  const auto given = json_.flag(key);
  if (!given || *given == value) return;
  json_.fail(key, fmt::format("= {} is not supported by this build; only {} is", *given, value));
}

void HfDecoder::only_pattern_of_class() const {
  constexpr const char* kKey = "sliding_window_pattern";
  if (json_.has("layer_types") || json_.is_default(kKey)) return;
  const HfFamily* family = find_hf_family(json_.required_text("model_type"));
  FATHOM_CHECK(family != nullptr && family->defaults, "a class with a pattern of its own is in hf_families.json");
  const std::int64_t period = family->defaults->required_integer(kKey, 1, INT64_MAX);
  if (json_.integer(kKey).value_or(period) == period) return;
  json_.fail(kKey, fmt::format("is not what transformers' class goes by, which has {}; say the kinds of the layers in "
                               "layer_types",
                               period));
}

DecoderConfig HfDecoder::finish() {
  std::vector<std::string> suspects = unread_positions_;
  for (const std::string& key : json_.unread_keys()) {
    if (std::find(std::begin(kComputationKeys), std::end(kComputationKeys), key) != std::end(kComputationKeys))
      suspects.push_back(key);
  }
  for (const std::string& key : suspects) {
    if (json_.is_off(key)) continue;
    json_.fail(key, fmt::format("is set, but the decoder of model_type '{}' has no such thing; it would be silently "
                                "ignored. Remove the key or correct model_type",
                                json_.required_text("model_type")));
  }
  return std::move(config);
}

}  // namespace fathom::checkpoint
