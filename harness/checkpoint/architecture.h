#pragma once
// What Fathom knows about one family of checkpoints: how its configuration reads and what its tensors are called.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/checkpoint/decoder_config.h"
#include "harness/checkpoint/gguf_file.h"
#include "harness/checkpoint/json_reader.h"
#include "harness/core/registry.h"

namespace fathom::checkpoint {

/// One tensor that a checkpoint of this configuration must hold.
struct TensorRule {
  std::string canonical;  ///< name in checkpoint.h
  std::string stored;     ///< name in the file
  std::vector<std::int64_t> shape;
};

struct ArchitectureEntry {
  std::string_view name;  ///< `model_type` of config.json, `general.architecture` of GGUF
  std::string_view summary;
  // Null where the family does not come in this form.
  DecoderConfig (*config_from_json)(const JsonObject& config);
  DecoderConfig (*config_from_gguf)(const GgufFile& file);
  std::vector<TensorRule> (*json_tensors)(const DecoderConfig& config);
  std::vector<TensorRule> (*gguf_tensors)(const DecoderConfig& config);
  /// True for tensors that a file may hold and that are read elsewhere or not needed.
  bool (*is_ignored)(std::string_view stored_name);
  /// Files use the canonical names: every tensor is taken as it is, and the model checks the list. No rules then.
  bool names_are_canonical;
};

const Registry<ArchitectureEntry>& architectures();

/// One entry per line of architectures.inc, defined in architectures/NAME.cpp.
namespace families {
#define FATHOM_ARCHITECTURE(name) ArchitectureEntry name##_entry();
#include "harness/checkpoint/architectures.inc"
#undef FATHOM_ARCHITECTURE
}  // namespace families

}  // namespace fathom::checkpoint
