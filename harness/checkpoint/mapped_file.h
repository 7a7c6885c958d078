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

/// Lets the system take back the whole pages of a part of a MappedFile: they stay in its cache, not in this process. A
/// later read brings them back. \param bytes  inside a MappedFile; other memory would lose its contents.
void release_mapped_pages(std::string_view bytes);

/// A small text file as a whole (config.json, tokenizer.json). \throws ModelError
std::string read_text_file(const std::string& path);

}  // namespace fathom::checkpoint
