#include "harness/checkpoint/hf_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/checkpoint/hf_positions.h"
#include "harness/core/text_util.h"

namespace fathom::checkpoint {
namespace {

constexpr std::int64_t kHfDecoderMaxSize = std::int64_t{1} << 28;
constexpr std::int64_t kHfDecoderMaxLayers = 4096;
constexpr std::int64_t kHfDecoderMaxContext = std::int64_t{1} << 40;

Activation read_hf_activation(const JsonObject& config) {
  const std::string name = config.text("hidden_act").value_or("silu");
  if (name == "silu" || name == "swish") return Activation::kSilu;
  if (name == "gelu") return Activation::kGelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast") return Activation::kGeluTanh;
  if (name == "relu") return Activation::kRelu;
  config.fail("hidden_act",
              fmt::format("= '{}' is not supported; supported: silu, gelu, gelu_new, gelu_pytorch_tanh, relu", name));
}

}  // namespace

DecoderConfig read_hf_decoder(const JsonObject& config) {
  for (const char* key : {"hidden_size", "num_attention_heads"}) config.required_integer(key, 1, kHfDecoderMaxSize);
  config.required_integer("num_hidden_layers", 1, kHfDecoderMaxLayers);
  config.required_integer("max_position_embeddings", 1, kHfDecoderMaxContext);
  DecoderConfig out = resolve_hf_positions(config);
  out.vocab_size = config.required_integer("vocab_size", 1, kHfDecoderMaxSize);
  out.norm_eps = config.required_positive("rms_norm_eps");
  out.activation = read_hf_activation(config);
  out.tied_head = config.flag("tie_word_embeddings").value_or(false);
  const std::int64_t d_ff = config.required_integer("intermediate_size", 1, kHfDecoderMaxSize);
  for (LayerSpec& layer : out.layers) layer.d_ff = d_ff;
  return out;
}

void refuse_foreign_keys(const JsonObject& config, const std::string& class_name,
                         const std::vector<std::string>& foreign_keys) {
  if (const auto classes = config.text_list("architectures"); classes && !classes->empty()) {
    if (std::find(classes->begin(), classes->end(), class_name) == classes->end()) {
      config.fail("architectures", fmt::format("= {} does not belong to model_type '{}', whose class is {}",
                                               join(*classes, ", "), config.required_text("model_type"), class_name));
    }
  }
  for (const std::string& key : foreign_keys) {
    if (config.is_off(key)) continue;
    config.fail(key, fmt::format("is set, but the decoder of model_type '{}' has no such thing; it would be silently "
                                 "ignored. Remove the key or correct model_type",
                                 config.required_text("model_type")));
  }
}

}  // namespace fathom::checkpoint
