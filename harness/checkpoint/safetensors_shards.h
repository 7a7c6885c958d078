#pragma once
// The weights of a folder: one model.safetensors, or several files and the index that says what stands where.

#include <string>
#include <string_view>
#include <vector>

#include "harness/checkpoint/safetensors_file.h"

namespace fathom::checkpoint {

class SafetensorsShards {
 public:
  /// model.safetensors if there is one, else the files that model.safetensors.index.json names; each is checked as
  /// SafetensorsFile does, and all against the index.
  /// \throws ModelError  for a missing file or tensor, one that stands in another file than the index says or in two,
  /// and a file name that leads out of the folder.
  static SafetensorsShards open(const std::string& folder);

  const std::vector<SafetensorsFile>& files() const { return files_; }
  /// Of all files, in their order.
  std::vector<const SafetensorsTensor*> tensors() const;
  /// The index's text, if there is one, and the bytes of every file.
  std::vector<std::string_view> parts() const;

 private:
  SafetensorsShards() = default;
  void open_indexed(const std::string& folder, const std::string& index_path);

  std::string index_text_;
  std::vector<SafetensorsFile> files_;
};

}  // namespace fathom::checkpoint
