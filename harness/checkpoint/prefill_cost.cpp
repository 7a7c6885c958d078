#include "harness/checkpoint/prefill_cost.h"

#include <algorithm>
#include <string_view>

#include "harness/core/text_util.h"

namespace fathom::checkpoint {
namespace {

/// 1 + 2 + … + n.
double triangle(std::int64_t n) {
  return 0.5 * static_cast<double>(n) * static_cast<double>(n + 1);
}

/// Share of a tensor that one token is multiplied by: 0 outside the layers and for vectors, less than 1 for routed
/// experts.
double used_share(const DecoderConfig& config, const TensorInfo& tensor) {
  constexpr std::string_view kLayers = "layers.";
  if (tensor.shape.size() != 2 || !starts_with(tensor.name, kLayers)) return 0;
  const auto layer = static_cast<std::size_t>(std::stoll(tensor.name.substr(kLayers.size())));
  const std::optional<MoeSpec>& moe = config.layers.at(layer).moe;
  const bool routed = moe && tensor.name.find(".mlp.experts.") != std::string::npos;
  return routed ? static_cast<double>(moe->n_chosen) / static_cast<double>(moe->n_experts) : 1;
}

}  // namespace

double mean_visible_keys(const LayerSpec& layer, std::int64_t length_tokens) {
  if (!layer.softmax_attention || length_tokens < 1) return 0;
  double pairs = triangle(length_tokens);
  if (layer.window && *layer.window < length_tokens) {
    pairs = triangle(*layer.window) + static_cast<double>((length_tokens - *layer.window) * *layer.window);
  }
  if (layer.chunk && *layer.chunk < length_tokens) {
    const std::int64_t n_whole = length_tokens / *layer.chunk;
    pairs = std::min(pairs, static_cast<double>(n_whole) * triangle(*layer.chunk) +
                                triangle(length_tokens - n_whole * *layer.chunk));
  }
  return pairs / static_cast<double>(length_tokens);
}

PrefillFlops prefill_flops_per_token(const Checkpoint& checkpoint, std::int64_t length_tokens) {
  const DecoderConfig& config = checkpoint.config();
  PrefillFlops flops;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    double size = used_share(config, tensor);
    for (const std::int64_t extent : tensor.shape) size *= static_cast<double>(extent);
    flops.matrices += 2 * size;
  }
  for (const LayerSpec& layer : config.layers) {
    flops.attention += 4 * mean_visible_keys(layer, length_tokens) * static_cast<double>(layer.n_heads * layer.d_head);
  }
  return flops;
}

}  // namespace fathom::checkpoint
