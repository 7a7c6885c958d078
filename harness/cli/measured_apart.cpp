#include "harness/cli/measured_apart.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "harness/core/error.h"

namespace fathom::cli {
namespace {

constexpr char kAnswer = 'A';
constexpr char kFailure = 'F';

std::string read_all(int descriptor) {
  std::string bytes;
  std::array<char, 4096> buffer{};
  for (ssize_t n = 0; (n = read(descriptor, buffer.data(), buffer.size())) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw ModelError("bench: cannot read what the measuring process says");
    bytes.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return bytes;
}

void write_all(int descriptor, const std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = write(descriptor, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno != EINTR) return;  // the parent has gone; nobody is left to tell
    if (n > 0) done += static_cast<std::size_t>(n);
  }
}

std::string answer_or_failure(const std::function<std::string()>& measure) {
  try {
    return kAnswer + measure();
  } catch (const std::exception& failure) {
    return kFailure + std::string(failure.what());
  }
}

}  // namespace

std::string measured_apart(const std::function<std::string()>& measure, const std::string& what) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw ModelError("bench: cannot make a pipe");
  const pid_t child = fork();
  if (child < 0) throw ModelError("bench: cannot start a process to measure in");
  if (child == 0) {
    close(ends[0]);
    write_all(ends[1], answer_or_failure(measure));
    std::_Exit(0);
  }
  close(ends[1]);
  const std::string answer = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (answer.empty()) {
    throw ModelError(
        fmt::format("bench: measuring {} ended without an answer (status {}); is the memory enough?", what, status));
  }
  if (answer.front() == kFailure) throw ModelError(answer.substr(1));
  return answer.substr(1);
}

}  // namespace fathom::cli
