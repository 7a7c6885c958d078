#pragma once
// The terminal side: stop signals, progress lines, environment. Only harness/cli talks to the outside like this.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "harness/core/log.h"

namespace fathom::cli {

/// Ctrl-C and SIGTERM ask to stop after the work in flight; a second one ends the program at once.
void install_stop_handler();

class SignalStop : public StopToken {
 public:
  bool stop_requested() const override;
};

/// One live line on a terminal, plain lines every few seconds elsewhere; nothing with --quiet. Writes to stderr.
class ProgressLine {
 public:
  enum class Mode { kNormal, kQuiet };
  explicit ProgressLine(Mode mode);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void show(const std::string& text);
  /// Replaces the live line by a lasting one.
  void finish(const std::string& text);
  /// A lasting message between live lines.
  void note(const std::string& text);

 private:
  void clear();
  Mode mode_;
  bool terminal_;
  bool live_ = false;
  std::chrono::steady_clock::time_point last_;
};

class ConsoleLogger : public Logger {
 public:
  explicit ConsoleLogger(ProgressLine& line) : line_(line) {}
  void log(LogLevel level, std::string_view message) override;

 private:
  ProgressLine& line_;
};

std::string environment(const char* name, const std::string& fallback);
/// $FATHOM_CACHE, else ~/.cache/fathom
std::string cache_root();
/// Finds a checkpoint: the path itself, else below $FATHOM_MODELS, else below the cache's `models` folder. \throws
/// ConfigError naming the places.
std::string find_model_path(const std::string& source);

std::string utc_now();        ///< "2026-01-31T12:00:00Z"
std::string hardware_line();  ///< processor, threads, memory
std::size_t memory_bytes();   ///< of the machine
std::int64_t peak_rss_bytes();
int terminal_columns();
bool stdout_is_terminal();

std::string format_duration(double seconds);  ///< "48 s", "3 min 10 s", "2 h 05 min"
std::string format_count(double value);       ///< "950", "12.3K", "4.56M"

std::string read_text_file(const std::string& path);  ///< \throws DataError
/// Writes beside its place and renames, so that a reader sees the old bytes or the new ones. Makes the folder. \throws
/// DataError
void write_text_file(const std::string& path, std::string_view bytes);

}  // namespace fathom::cli
