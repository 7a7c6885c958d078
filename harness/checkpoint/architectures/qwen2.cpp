#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/gguf_config.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig qwen2_from_json(const JsonObject& file) {
  HfDecoder decoder(file, {"Qwen2ForCausalLM"});
  decoder.config.attention_bias = true;
  return decoder.finish();
}

DecoderConfig qwen2_from_gguf(const GgufFile& file) {
  return read_gguf_decoder(file);
}

NameMap qwen2_json_names(const DecoderConfig&) {
  return llama_style_names();
}

NameMap qwen2_gguf_names(const DecoderConfig&) {
  return gguf_style_names();
}

}  // namespace

ArchitectureEntry families::qwen2_entry() {
  ArchitectureEntry entry{};
  entry.name = "qwen2";
  entry.gguf_name = "qwen2";
  entry.summary = "Llama with biases on queries, keys and values (Qwen 2 and 2.5).";
  entry.config_from_json = &qwen2_from_json;
  entry.config_from_gguf = &qwen2_from_gguf;
  entry.json_names = &qwen2_json_names;
  entry.gguf_names = &qwen2_gguf_names;
  return entry;
}

}  // namespace fathom::checkpoint
