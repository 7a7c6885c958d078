#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/gguf_config.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig ministral3_from_json(const JsonObject& file) {
  HfDecoder decoder(file, {"Ministral3ForCausalLM"});
  return decoder.finish();
}

DecoderConfig ministral3_from_gguf(const GgufFile& file) {
  return read_gguf_decoder(file);
}

NameMap ministral3_json_names(const DecoderConfig&) {
  return llama_style_names();
}

NameMap ministral3_gguf_names(const DecoderConfig&) {
  return gguf_style_names();
}

}  // namespace

ArchitectureEntry families::ministral3_entry() {
  ArchitectureEntry entry{};
  entry.name = "ministral3";
  entry.gguf_name = "mistral3";
  entry.summary = "Mistral with YaRN and a query scale that grows with the position (Ministral 3).";
  entry.config_from_json = &ministral3_from_json;
  entry.config_from_gguf = &ministral3_from_gguf;
  entry.json_names = &ministral3_json_names;
  entry.gguf_names = &ministral3_gguf_names;
  return entry;
}

}  // namespace fathom::checkpoint
