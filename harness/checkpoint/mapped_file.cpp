#include "harness/checkpoint/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "harness/core/error.h"

namespace fathom::checkpoint {
namespace {

/// Closes a descriptor that only the map needed.
class MappedFileDescriptor {
 public:
  explicit MappedFileDescriptor(int value) : value_(value) {}
  ~MappedFileDescriptor() {
    if (value_ >= 0) ::close(value_);
  }
  MappedFileDescriptor(const MappedFileDescriptor&) = delete;
  MappedFileDescriptor& operator=(const MappedFileDescriptor&) = delete;
  int value() const { return value_; }

 private:
  int value_;
};

[[noreturn]] void throw_unreadable(const std::string& path, int error) {
  throw ModelError(fmt::format("model: cannot read {}: {}", path, std::strerror(error)));
}

}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
  const MappedFileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.value() < 0) throw_unreadable(path, errno);
  struct stat status {};
  if (::fstat(file.value(), &status) != 0) throw_unreadable(path, errno);
  if (!S_ISREG(status.st_mode)) throw ModelError(fmt::format("model: {} is not a regular file", path));
  size_bytes_ = static_cast<std::size_t>(status.st_size);
  if (size_bytes_ == 0) return;  // mmap refuses an empty range
  void* map = ::mmap(nullptr, size_bytes_, PROT_READ, MAP_PRIVATE, file.value(), 0);
  if (map == MAP_FAILED) throw_unreadable(path, errno);
  data_ = static_cast<const char*>(map);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_bytes_);
}

void release_mapped_pages(std::string_view bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::uintptr_t first_page = (begin + page - 1) / page * page;
  const std::uintptr_t end = (begin + bytes.size()) / page * page;
  if (first_page >= end) return;
  // Advice: where it fails, nothing but memory is lost.
  char* const pages = const_cast<char*>(bytes.data()) + (first_page - begin);
  static_cast<void>(::madvise(pages, end - first_page, MADV_DONTNEED));
}

std::string read_text_file(const std::string& path) {
  const MappedFile file(path);
  return std::string(file.bytes());
}

}  // namespace fathom::checkpoint
