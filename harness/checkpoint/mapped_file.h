#pragma once
// A file's bytes as read-only memory, without reading them first.

#include <string>
#include <string_view>

namespace fathom::checkpoint {

/// Read-only memory map; unmapped when destroyed.
class MappedFile {
 public:
  /// \throws ModelError  naming path and reason, if it cannot be opened or is no regular file.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return {data_, size_bytes_}; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  const char* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

/// A small text file as a whole (config.json, tokenizer.json). \throws ModelError
std::string read_text_file(const std::string& path);

}  // namespace fathom::checkpoint
