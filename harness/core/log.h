#pragma once
// The library does not print: it reports events to a Logger that the caller passes in, and the command line formats
// them.

#include <string_view>

namespace fathom {

enum class LogLevel { kInfo, kWarning };

class Logger {
 public:
  virtual ~Logger() = default;
  virtual void log(LogLevel level, std::string_view message) = 0;
  void info(std::string_view message) { log(LogLevel::kInfo, message); }
  void warning(std::string_view message) { log(LogLevel::kWarning, message); }
};

/// Swallows everything; for tests and callers that do not care.
class NullLogger : public Logger {
 public:
  void log(LogLevel, std::string_view) override {}
};

/// Asked between units of work whether to stop (Ctrl-C). Returning true ends the work after what is in flight.
class StopToken {
 public:
  virtual ~StopToken() = default;
  virtual bool stop_requested() const { return false; }
};

}  // namespace fathom
