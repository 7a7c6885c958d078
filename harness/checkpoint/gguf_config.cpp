#include "harness/checkpoint/gguf_config.h"

#include <fmt/format.h>

#include "harness/checkpoint/gguf_positions.h"
#include "harness/core/text_util.h"

namespace fathom::checkpoint {

DecoderConfig read_gguf_decoder(const GgufFile& file) {
  DecoderConfig out = resolve_gguf_positions(file);
  const std::string& arch = out.architecture;
  const std::string eps_key = arch + ".attention.layer_norm_rms_epsilon";
  const auto eps = file.real(eps_key);
  if (!eps) file.fail(eps_key, "is missing; a number above 0 is needed");
  if (!(*eps > 0)) file.fail(eps_key, fmt::format("= {} must be above 0", format_double(*eps)));
  // Files hold float32: 1e-5 comes as 9.99999975e-6, which is what the reference computes with as well.
  out.norm_eps = *eps;

  const GgufTensor* embedding = file.find_tensor("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2) file.fail("token_embd.weight", "is missing or no matrix");
  out.vocab_size = embedding->shape[0];

  const auto d_ff = gguf_layer_integers(file, arch + ".feed_forward_length", out.layers.size(), 1, std::nullopt);
  for (std::size_t i = 0; i < out.layers.size(); ++i) {
    LayerSpec& layer = out.layers[i];
    if (!layer.softmax_attention) {
      file.fail(arch + ".attention.head_count", fmt::format("or head_count_kv is 0 in layer {}", i));
    }
    const std::int64_t value_length = file.integer(arch + ".attention.value_length").value_or(layer.d_head);
    if (value_length != layer.d_head) {
      file.fail(arch + ".attention.value_length",
                fmt::format("= {} differs from key_length = {}, which is not supported", value_length, layer.d_head));
    }
    layer.d_ff = d_ff[i];
  }
  return out;
}

}  // namespace fathom::checkpoint
