#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/hf_config.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig mistral_from_json(const JsonObject& file) {
  HfDecoder decoder(file, {"MistralForCausalLM"});
  return decoder.finish();
}

NameMap mistral_json_names(const DecoderConfig&) {
  return llama_style_names();
}

}  // namespace

ArchitectureEntry families::mistral_entry() {
  ArchitectureEntry entry{};
  entry.name = "mistral";
  entry.summary = "Llama with a sliding window on every layer (Mistral 7B).";
  entry.config_from_json = &mistral_from_json;
  entry.json_names = &mistral_json_names;
  return entry;
}

}  // namespace fathom::checkpoint
