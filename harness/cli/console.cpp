#include "harness/cli/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "harness/checkpoint/save.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::cli {
namespace {

namespace fs = std::filesystem;

// A signal handler may touch nothing else.
volatile std::sig_atomic_t stop_signals = 0;

void on_stop_signal(int signal_number) {
  if (stop_signals != 0) {
    std::signal(signal_number, SIG_DFL);
    std::raise(signal_number);
  }
  stop_signals = 1;
}

std::string first_matching_line(const char* path, std::string_view key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (starts_with(line, key)) {
      const auto colon = line.find(':');
      return std::string(trim(line.substr(colon + 1)));
    }
  }
  return "unknown";
}

}  // namespace

void install_stop_handler() {
  struct sigaction action = {};
  action.sa_handler = on_stop_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool SignalStop::stop_requested() const {
  return stop_signals != 0;
}

ProgressLine::ProgressLine(Mode mode) : mode_(mode), terminal_(isatty(STDERR_FILENO) != 0) {}

ProgressLine::~ProgressLine() {
  clear();
}

void ProgressLine::clear() {
  if (live_) {
    fmt::print(stderr, "\r\x1b[K");
    std::fflush(stderr);
  }
  live_ = false;
}

void ProgressLine::show(const std::string& text) {
  if (mode_ == Mode::kQuiet) return;
  const auto now = std::chrono::steady_clock::now();
  const auto pause = terminal_ ? std::chrono::milliseconds(150) : std::chrono::milliseconds(10000);
  if (last_.time_since_epoch().count() != 0 && now - last_ < pause) return;
  last_ = now;
  if (terminal_) {
    const auto columns = static_cast<std::size_t>(std::max(20, terminal_columns() - 1));
    fmt::print(stderr, "\r{}\x1b[K", text.substr(0, columns));
    live_ = true;
  } else {
    fmt::print(stderr, "{}\n", text);
  }
  std::fflush(stderr);
}

void ProgressLine::finish(const std::string& text) {
  note(text);
  last_ = {};
}

void ProgressLine::note(const std::string& text) {
  clear();
  if (mode_ != Mode::kQuiet) fmt::print(stderr, "{}\n", text);
}

void ConsoleLogger::log(LogLevel level, std::string_view message) {
  line_.note(level == LogLevel::kWarning ? fmt::format("warning: {}", message) : std::string(message));
}

std::string environment(const char* name, const std::string& fallback) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? fallback : std::string(value);
}

std::string cache_root() {
  return environment("FATHOM_CACHE", environment("HOME", "/tmp") + "/.cache/fathom");
}

std::string find_model_path(const std::string& source) {
  if (source.empty()) throw ConfigError("the model's path is empty; give a .gguf file or a folder with config.json");
  if (source.front() == '/') {
    if (fs::exists(source)) return source;
    throw ConfigError(fmt::format("model source '{}' not found", source));
  }
  std::vector<std::string> tried = {source};
  const std::string models = environment("FATHOM_MODELS", "");
  if (!models.empty()) tried.push_back(models + "/" + source);
  tried.push_back(cache_root() + "/models/" + source);
  for (const std::string& path : tried) {
    if (fs::exists(path)) return path;
  }
  throw ConfigError(
      fmt::format("model source '{}' not found; looked at {}; third_party/get_models.sh fetches the example models",
                  source, join(tried, ", ")));
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::size_t memory_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::string hardware_line() {
  const double gib = static_cast<double>(memory_bytes()) / (1 << 30);
  return fmt::format("{}, {} threads, {:.0f} GiB", first_matching_line("/proc/cpuinfo", "model name"),
                     std::thread::hardware_concurrency(), gib);
}

std::int64_t peak_rss_bytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

int terminal_columns() {
  winsize size = {};
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  }
  return 100;
}

bool stdout_is_terminal() {
  return isatty(STDOUT_FILENO) != 0;
}

std::string format_duration(double seconds) {
  const auto total = static_cast<std::int64_t>(seconds + 0.5);
  if (total < 60) return fmt::format("{} s", total);
  if (total < 3600) return fmt::format("{} min {:02} s", total / 60, total % 60);
  return fmt::format("{} h {:02} min", total / 3600, total % 3600 / 60);
}

std::string format_count(double value) {
  if (value < 1000) return fmt::format("{:.0f}", value);
  if (value < 1e6) return fmt::format("{:.1f}K", value / 1e3);
  if (value < 1e9) return fmt::format("{:.2f}M", value / 1e6);
  return fmt::format("{:.2f}G", value / 1e9);
}

std::string read_text_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    if (file && fs::exists(path) && !fs::is_directory(path) && fs::file_size(path) == 0) return "";
    throw DataError(fmt::format("cannot read '{}': {}", path, std::strerror(errno)));
  }
  return text.str();
}

void write_text_file(const std::string& path, std::string_view bytes) {
  const fs::path folder = fs::path(path).parent_path();
  std::error_code failure;  // a folder that cannot be made shows when the file cannot be written
  if (!folder.empty()) fs::create_directories(folder, failure);
  checkpoint::write_file_atomically(path, bytes);
}

}  // namespace fathom::cli
