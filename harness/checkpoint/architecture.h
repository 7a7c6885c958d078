#pragma once
// What Fathom knows about one family of checkpoints: how its configuration reads and what its tensors are called.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/checkpoint/decoder_config.h"
#include "harness/checkpoint/gguf_file.h"
#include "harness/checkpoint/json_reader.h"
#include "harness/checkpoint/name_map.h"
#include "harness/core/registry.h"

namespace fathom::checkpoint {

struct ArchitectureEntry {
  std::string_view name;       ///< `model_type` of config.json
  std::string_view gguf_name;  ///< `general.architecture` of GGUF
  std::string_view summary;
  // Null where the family does not come in this form.
  DecoderConfig (*config_from_json)(const JsonObject& config);
  DecoderConfig (*config_from_gguf)(const GgufFile& file);
  NameMap (*json_names)(const DecoderConfig& config);
  NameMap (*gguf_names)(const DecoderConfig& config);
  /// Metadata keys, after the architecture, that change what is computed and that config_from_gguf reads; others that
  /// do are refused (gguf_config.h).
  std::vector<std::string_view> gguf_keys;
  /// No checkpoint of the family with the reference's numbers is among the tests.
  bool unchecked;
  /// Files use the canonical names: every tensor is taken as it is, and the model checks the list. No rules then.
  bool names_are_canonical;
};

const Registry<ArchitectureEntry>& architectures();

/// True for tensors that files may hold and that are read elsewhere or not needed: tables that the configuration gives,
/// masks, and the head of a tied model.
bool is_ignored_tensor(std::string_view stored_name);

/// One entry per line of architectures.inc, defined in architectures/NAME.cpp.
namespace families {
#define FATHOM_ARCHITECTURE(name) ArchitectureEntry name##_entry();
#include "harness/checkpoint/architectures.inc"
#undef FATHOM_ARCHITECTURE
}  // namespace families

}  // namespace fathom::checkpoint
