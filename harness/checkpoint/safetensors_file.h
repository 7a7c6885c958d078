#pragma once
// safetensors container, one file: an 8-byte header size, a JSON header, the data. Checked before use.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/checkpoint/dequantize.h"
#include "harness/checkpoint/mapped_file.h"

namespace fathom::checkpoint {

struct SafetensorsTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  const StorageType* type = nullptr;  ///< without a function for types other than F32, F16 and BF16
  const std::uint8_t* data = nullptr;
};

class SafetensorsFile {
 public:
  /// Maps and checks a file: header size, JSON, types, shapes, and that the tensors' bytes cover the
  /// data section without gap or overlap. \throws ModelError  naming file, tensor and value.
  static SafetensorsFile open(const std::string& path);
  /// Checks bytes that outlive the result. \param where  names them in messages.
  static SafetensorsFile parse(std::string_view bytes, const std::string& where);

  const std::string& where() const { return where_; }
  std::string_view bytes() const { return bytes_; }
  /// In the order of their data.
  const std::vector<SafetensorsTensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  SafetensorsFile() = default;

  std::shared_ptr<const MappedFile> file_;
  std::string_view bytes_;
  std::string where_;
  std::vector<SafetensorsTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace fathom::checkpoint
