#pragma once
// The verbs of the program. One file (cmd_NAME.cpp) and one line in commands.inc each; help is generated from the
// entries.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/registry.h"

namespace fathom::cli {

/// `--name VALUE`, or a flag if `value_name` is empty.
struct OptionSpec {
  std::string name;
  std::string value_name;
  std::string help;
  std::vector<std::string> allowed;  ///< empty = anything
  enum class Count { kOnce, kRepeated } count = Count::kOnce;
};

struct PositionalSpec {
  std::string name;
  std::string help;
  enum class Need { kRequired, kOptional } need = Need::kRequired;
};

/// Parsed arguments of one command.
class Arguments {
 public:
  bool has(std::string_view name) const;
  std::optional<std::string> get(std::string_view name) const;
  std::string get_or(std::string_view name, std::string_view fallback) const;
  std::vector<std::string> all(std::string_view name) const;
  /// \throws ConfigError if the value is not an integer in low..high.
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t low, std::int64_t high) const;

  std::map<std::string, std::vector<std::string>, std::less<>> values;  ///< positionals under their names
};

struct CommandEntry {
  std::string_view name;
  std::string_view summary;  ///< one line
  std::string_view details;  ///< what it reads and writes; shown by --help
  std::vector<std::string_view> examples;
  std::vector<PositionalSpec> positionals;
  std::vector<OptionSpec> options;
  int (*run)(const Arguments& arguments);
};

const Registry<CommandEntry>& commands();

/// \throws ConfigError for unknown options (with the nearest), missing values, values outside the allowed words, too
/// many or too few positionals.
Arguments parse_arguments(const CommandEntry& command, const std::vector<std::string>& args);
std::string command_help(const CommandEntry& command);
std::string program_help();

/// The whole program: dispatches, prints errors, returns the exit code.
int run_program(const std::vector<std::string>& args);

}  // namespace fathom::cli
