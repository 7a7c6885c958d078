#pragma once
// Typed errors. The message says what, where, the value, what is allowed, and the fix: lower case, no full stop.
// They are caught in main() and at the evaluator's per-sample boundary, nowhere else.

#include <stdexcept>
#include <string>
#include <string_view>

namespace fathom {

/// Exit codes of the program; also the classification of errors.
enum class ExitCode : int {
  kOk = 0,
  kFailure = 1,       ///< data, model or store failure
  kUsage = 2,         ///< usage or configuration
  kBug = 3,           ///< a broken invariant of Fathom itself
  kRegression = 4,    ///< `compare` found a regression
  kIncomplete = 5,    ///< done, but too many samples failed or too little in common
  kInterrupted = 130  ///< Ctrl-C; everything finished is kept
};

class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode exit_code() const { return code_; }

 private:
  ExitCode code_;
};

/// The user can fix it by changing the command or the configuration (exit 2).
class ConfigError : public Error {
 public:
  explicit ConfigError(const std::string& message) : Error(ExitCode::kUsage, message) {}
};

/// An input file, corpus or sample cannot be used (exit 1).
class DataError : public Error {
 public:
  explicit DataError(const std::string& message) : Error(ExitCode::kFailure, message) {}
};

/// A sample or cell cannot be built at the requested length; carries the smallest length that would do.
class TooShortError : public DataError {
 public:
  TooShortError(const std::string& message, long long smallest_length_tokens)
      : DataError(message), smallest_length_tokens_(smallest_length_tokens) {}
  long long smallest_length_tokens() const { return smallest_length_tokens_; }

 private:
  long long smallest_length_tokens_;
};

/// A checkpoint is damaged, inconsistent or asks for something unknown (exit 1).
class ModelError : public Error {
 public:
  explicit ModelError(const std::string& message) : Error(ExitCode::kFailure, message) {}
};

/// The results database cannot be read or written (exit 1).
class StoreError : public Error {
 public:
  explicit StoreError(const std::string& message) : Error(ExitCode::kFailure, message) {}
};

/// A bug in Fathom (exit 3); thrown by FATHOM_CHECK only.
class InvariantError : public Error {
 public:
  explicit InvariantError(const std::string& message) : Error(ExitCode::kBug, message) {}
};

/// The run was asked to stop (Ctrl-C, SIGTERM); finished work is kept (exit 130).
class Interrupted : public Error {
 public:
  explicit Interrupted(const std::string& message) : Error(ExitCode::kInterrupted, message) {}
};

[[noreturn]] void throw_invariant(const char* file, int line, const char* condition, std::string_view message);

}  // namespace fathom

/// States an invariant; never reachable from user input. Stays on in every build type.
#define FATHOM_CHECK(condition, message)                                                  \
  do {                                                                                    \
    if (!(condition)) ::fathom::throw_invariant(__FILE__, __LINE__, #condition, message); \
  } while (false)
