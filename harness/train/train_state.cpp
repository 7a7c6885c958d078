#include "harness/train/train_state.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <type_traits>

#include "harness/checkpoint/save.h"
#include "harness/core/error.h"
#include "harness/core/hash.h"

namespace fathom::train {
namespace {

constexpr std::string_view kStateMagic = "fathom-train-state-1\n";

class StateWriter {
 public:
  template <typename T>
  void number(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string_view value) {
    number(static_cast<std::uint64_t>(value.size()));
    bytes_ += value;
  }
  template <typename T>
  void list(const std::vector<T>& values) {
    number(static_cast<std::uint64_t>(values.size()));
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Bounds were checked once by the hash over the whole file; these checks turn a bug into an error instead of a crash.
class StateReader {
 public:
  StateReader(std::string_view bytes, std::string path) : bytes_(bytes), path_(std::move(path)) {}

  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string text() { return std::string(take(number<std::uint64_t>())); }
  template <typename T>
  std::vector<T> list() {
    const auto count = number<std::uint64_t>();
    if (count > bytes_.size() / sizeof(T)) damaged();
    std::vector<T> values(count);
    const std::string_view source = take(count * sizeof(T));
    if (count > 0) std::memcpy(values.data(), source.data(), source.size());
    return values;
  }

  [[noreturn]] void damaged() const {
    throw DataError(fmt::format("train: '{}' is damaged; delete it to train from the start", path_));
  }

 private:
  std::string_view take(std::uint64_t n) {
    if (n > bytes_.size()) damaged();
    const std::string_view out = bytes_.substr(0, n);
    bytes_.remove_prefix(n);
    return out;
  }

  std::string_view bytes_;
  std::string path_;
};

void write_curriculum(StateWriter& out, const CurriculumState& state) {
  out.number(state.rung);
  out.number(state.batches_at_rung);
  out.number(state.copy_accuracy);
  out.list(state.task_accuracy);
  out.number(static_cast<std::uint8_t>(state.decay_start.has_value()));
  out.number(state.decay_start.value_or(0));
  out.number(static_cast<std::uint8_t>(state.mastered));
}

CurriculumState read_curriculum(StateReader& in) {
  CurriculumState state;
  state.rung = in.number<std::int64_t>();
  state.batches_at_rung = in.number<std::int64_t>();
  state.copy_accuracy = in.number<double>();
  state.task_accuracy = in.list<double>();
  const bool decays = in.number<std::uint8_t>() != 0;
  const auto start = in.number<std::int64_t>();
  if (decays) state.decay_start = start;
  state.mastered = in.number<std::uint8_t>() != 0;
  return state;
}

}  // namespace

void write_train_state(const std::string& path, const std::string& canonical_spec, const TrainState& state) {
  StateWriter out;
  out.text(canonical_spec);
  out.number(state.steps);
  out.number(state.seconds);
  out.number(state.log_size_bytes);
  write_curriculum(out, state.curriculum);
  out.list(state.values);
  out.list(state.first_moment);
  out.list(state.second_moment);
  const std::string body = out.take();
  checkpoint::write_file_atomically(path, std::string(kStateMagic) + hash_hex(body) + body);
}

std::optional<TrainState> read_train_state(const std::string& path, const std::string& canonical_spec) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  constexpr std::size_t kHashSize = 32;
  const std::size_t header = kStateMagic.size() + kHashSize;
  const std::string_view view = bytes;
  StateReader in(view.substr(std::min(header, view.size())), path);
  if (view.size() < header || view.substr(0, kStateMagic.size()) != kStateMagic ||
      view.substr(kStateMagic.size(), kHashSize) != hash_hex(view.substr(header))) {
    in.damaged();
  }
  if (in.text() != canonical_spec) {
    throw DataError(
        fmt::format("train: '{}' belongs to a training with other settings; delete it or use another folder", path));
  }
  TrainState state;
  state.steps = in.number<std::int64_t>();
  state.seconds = in.number<double>();
  state.log_size_bytes = in.number<std::int64_t>();
  state.curriculum = read_curriculum(in);
  state.values = in.list<float>();
  state.first_moment = in.list<float>();
  state.second_moment = in.list<float>();
  return state;
}

FolderLock::FolderLock(const std::string& folder) {
  const std::string path = folder + "/train.lock";
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw DataError(fmt::format("train: cannot write '{}': {}", path, std::strerror(errno)));
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    const int reason = errno;
    ::close(descriptor_);
    if (reason == EWOULDBLOCK) {
      throw DataError(fmt::format(
          "train: another process is training this model in '{}'; wait for it to end, then run the same command again",
          folder));
    }
    throw DataError(fmt::format("train: cannot lock '{}': {}", path, std::strerror(reason)));
  }
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace fathom::train
