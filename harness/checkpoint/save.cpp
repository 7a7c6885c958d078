#include "harness/checkpoint/save.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/core/error.h"

namespace fathom::checkpoint {
namespace {

/// A file that appears under its name only when finish() succeeds; otherwise nothing stays behind.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path) : path_(path), temporary_(fmt::format("{}.{}.tmp", path, ::getpid())) {
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail("create", temporary_);
  }
  ~AtomicFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!finished_) std::remove(temporary_.c_str());
  }
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ::ssize_t n = ::write(descriptor_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail("write", temporary_);
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }

  void finish() {
    if (::fsync(descriptor_) != 0) fail("sync", temporary_);
    const int closed = ::close(descriptor_);
    descriptor_ = -1;
    if (closed != 0) fail("close", temporary_);
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename to", path_);
    finished_ = true;
    sync_folder();
  }

 private:
  [[noreturn]] void fail(const char* action, const std::string& name) const {
    throw DataError(fmt::format("model: cannot {} {}: {}", action, name, std::strerror(errno)));
  }

  /// The rename itself survives a power cut only once the folder is synced.
  void sync_folder() const {
    const std::filesystem::path parent = std::filesystem::path(path_).parent_path();
    const int folder = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return;
    ::fsync(folder);
    ::close(folder);
  }

  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
  bool finished_ = false;
};

std::uint64_t saved_size_bytes(const TensorToSave& tensor) {
  std::uint64_t n_values = 1;
  for (const std::int64_t size : tensor.shape) {
    if (size < 0) throw DataError(fmt::format("model: tensor '{}' has a negative size {}", tensor.name, size));
    n_values *= static_cast<std::uint64_t>(size);
  }
  return n_values * sizeof(float);
}

std::string safetensors_header(const std::vector<TensorToSave>& tensors) {
  nlohmann::ordered_json header = {{"__metadata__", {{"format", "pt"}}}};
  std::set<std::string> names;
  std::uint64_t offset = 0;
  for (const TensorToSave& tensor : tensors) {
    if (!names.insert(tensor.name).second || tensor.name == "__metadata__") {
      throw DataError(fmt::format("model: tensor name '{}' cannot be saved twice", tensor.name));
    }
    const std::uint64_t end = offset + saved_size_bytes(tensor);
    header[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data begins aligned
  return text;
}

}  // namespace

void write_file_atomically(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.finish();
}

void write_safetensors(const std::string& path, const std::vector<TensorToSave>& tensors) {
  const std::string header = safetensors_header(tensors);
  const std::uint64_t header_bytes = header.size();
  AtomicFile file(path);
  file.write({reinterpret_cast<const char*>(&header_bytes), sizeof(header_bytes)});
  file.write(header);
  for (const TensorToSave& tensor : tensors) {
    file.write({reinterpret_cast<const char*>(tensor.data), saved_size_bytes(tensor)});
  }
  file.finish();
}

}  // namespace fathom::checkpoint
