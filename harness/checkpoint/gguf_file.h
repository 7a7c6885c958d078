#pragma once
// GGUF container, versions 2 and 3, little-endian. Everything a file claims is checked against its size before it is
// used.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "harness/checkpoint/dequantize.h"
#include "harness/checkpoint/mapped_file.h"

namespace fathom::checkpoint {

struct GgufTensor {
  std::string name;
  std::vector<std::int64_t> shape;  ///< row-major: the file's dimensions reversed, so the contiguous one is last
  const StorageType* type = nullptr;
  const std::uint8_t* data = nullptr;
  std::uint64_t offset = 0;  ///< from the start of the data section
  std::uint64_t size_bytes = 0;
};

/// Numbers are widened; texts point into the file.
using GgufValue = std::variant<std::int64_t, double, bool, std::string_view, std::vector<std::int64_t>,
                               std::vector<double>, std::vector<std::string_view>>;

class GgufFile {
 public:
  /// Maps and checks a file. With the first of several ("NAME-00001-of-00003.gguf") the others are opened too, and the
  /// result holds the tensors of all. \throws ModelError  naming file, position and value of the first thing that
  /// cannot be, for example a file that is missing or does not belong.
  static GgufFile open(const std::string& path);
  /// Checks bytes that outlive the result. \param where  names them in messages.
  static GgufFile parse(std::string_view bytes, const std::string& where);

  const std::string& where() const { return where_; }
  std::uint32_t version() const { return version_; }
  /// Of this file; of the first if there are several.
  std::string_view bytes() const { return bytes_; }
  /// The bytes of every file.
  const std::vector<std::string_view>& parts() const { return parts_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  /// Null if there is none.
  const GgufTensor* find_tensor(std::string_view name) const;
  const std::map<std::string, GgufValue, std::less<>>& metadata() const { return metadata_; }

  // Typed look-ups: nothing if the key is absent. \throws ModelError for a value of another kind.
  std::optional<std::int64_t> integer(std::string_view key) const;
  std::optional<double> real(std::string_view key) const;  ///< integers count
  std::optional<bool> flag(std::string_view key) const;
  std::optional<std::string_view> text(std::string_view key) const;
  std::optional<std::vector<std::int64_t>> integer_list(std::string_view key) const;
  std::optional<std::vector<double>> real_list(std::string_view key) const;
  std::optional<std::vector<std::string_view>> text_list(std::string_view key) const;

  /// \throws ModelError  that names file and key; `problem` follows.
  [[noreturn]] void fail(std::string_view key, const std::string& problem) const;

 private:
  GgufFile() = default;
  friend class GgufParser;
  template <typename Value>
  std::optional<Value> lookup(std::string_view key, std::string_view kind) const;

  static GgufFile open_single(const std::string& path);
  void add_shards(std::int64_t count);

  std::vector<std::shared_ptr<const MappedFile>> files_;
  std::string_view bytes_;
  std::vector<std::string_view> parts_;
  std::string where_;
  std::uint32_t version_ = 0;
  std::map<std::string, GgufValue, std::less<>> metadata_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string, std::size_t, std::less<>> tensor_index_;
};

}  // namespace fathom::checkpoint
