#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/gguf_config.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig qwen3_from_json(const JsonObject& file) {
  HfDecoder decoder(file, {"Qwen3ForCausalLM"});
  decoder.config.qk_norm = QkNorm::kPerHead;
  decoder.config.attention_bias = decoder.config.attention_out_bias = decoder.flag("attention_bias", false);
  return decoder.finish();
}

DecoderConfig qwen3_from_gguf(const GgufFile& file) {
  return read_gguf_decoder(file);
}

NameMap qwen3_json_names(const DecoderConfig&) {
  return llama_style_names();
}

NameMap qwen3_gguf_names(const DecoderConfig&) {
  return gguf_style_names();
}

}  // namespace

ArchitectureEntry families::qwen3_entry() {
  ArchitectureEntry entry{};
  entry.name = "qwen3";
  entry.gguf_name = "qwen3";
  entry.summary = "Norms of queries and keys per head (Qwen 3).";
  entry.config_from_json = &qwen3_from_json;
  entry.config_from_gguf = &qwen3_from_gguf;
  entry.json_names = &qwen3_json_names;
  entry.gguf_names = &qwen3_gguf_names;
  return entry;
}

}  // namespace fathom::checkpoint
