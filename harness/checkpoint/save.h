#pragma once
// Writes checkpoints so that a reader, at any instant, sees either the old file or the whole new one.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/checkpoint/fathom_config.h"

namespace fathom::checkpoint {

struct TensorToSave {
  std::string name;  ///< canonical
  std::vector<std::int64_t> shape;
  const float* data = nullptr;  ///< row-major
};

/// Writes `path` beside its place, syncs it, renames it, syncs the folder. \throws DataError
void write_file_atomically(const std::string& path, std::string_view content);

/// Writes float32 tensors as one safetensors file, atomically, in the order given. Equal tensors give equal bytes.
/// \throws DataError  if the file cannot be written, or for a name that stands twice or a negative size.
void write_safetensors(const std::string& path, const std::vector<TensorToSave>& tensors);

}  // namespace fathom::checkpoint
