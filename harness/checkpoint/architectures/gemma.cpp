#include <cmath>

#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/gguf_config.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig gemma_from_json(const JsonObject& file) {
  HfDecoder decoder(file, {"GemmaForCausalLM", "rms_norm_eps", 1e-6, "hidden_act", "gelu_pytorch_tanh",
                           "intermediate_size", 0, true});
  // The first files say gelu and mean its approximation.
  if (decoder.config.activation == Activation::kGelu) decoder.config.activation = Activation::kGeluTanh;
  const auto other = decoder.json().text("hidden_activation");
  if (other && parse_hf_activation(decoder.json(), "hidden_activation", *other) != decoder.config.activation)
    decoder.json().fail("hidden_activation", "= '" + *other + "' contradicts hidden_act, which transformers goes by");
  decoder.config.embedding_multiplier = std::sqrt(static_cast<double>(decoder.config.d_model));
  decoder.config.attention_bias = decoder.config.attention_out_bias = decoder.flag("attention_bias", false);
  decoder.must_be("use_bidirectional_attention", false);
  return decoder.finish();
}

DecoderConfig gemma_from_gguf(const GgufFile& file) {
  DecoderConfig config = read_gguf_decoder(file);
  config.activation = Activation::kGeluTanh;
  config.embedding_multiplier = std::sqrt(static_cast<double>(config.d_model));
  return config;
}

NameMap gemma_json_names(const DecoderConfig&) {
  NameMap names = llama_style_names();
  names.norms_less_one = true;
  return names;
}

NameMap gemma_gguf_names(const DecoderConfig&) {
  return gguf_style_names();
}

}  // namespace

ArchitectureEntry families::gemma_entry() {
  ArchitectureEntry entry{};
  entry.name = "gemma";
  entry.gguf_name = "gemma";
  entry.summary = "Embeddings scaled by sqrt(width), norm weights less 1 (Gemma 1).";
  entry.config_from_json = &gemma_from_json;
  entry.config_from_gguf = &gemma_from_gguf;
  entry.json_names = &gemma_json_names;
  entry.gguf_names = &gemma_gguf_names;
  return entry;
}

}  // namespace fathom::checkpoint
