#include "harness/cli/command.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>

#include "harness/cli/command_entries.h"
#include "harness/core/error.h"

namespace fathom::cli {
namespace {

std::string usage_line(const CommandEntry& command) {
  std::string line = fmt::format("fathom {}", command.name);
  for (const PositionalSpec& positional : command.positionals) {
    line += positional.need == PositionalSpec::Need::kRequired ? fmt::format(" {}", positional.name)
                                                               : fmt::format(" [{}]", positional.name);
  }
  return line + " [options]";
}

int run_command(const CommandEntry& command, const std::vector<std::string>& args) {
  for (const std::string& arg : args) {
    if (arg == "--help" || arg == "-h") {
      fmt::print("{}", command_help(command));
      return static_cast<int>(ExitCode::kOk);
    }
  }
  return command.run(parse_arguments(command, args));
}

int dispatch(const std::vector<std::string>& args) {
  if (args.empty()) {
    fmt::print(stderr, "{}", program_help());
    return static_cast<int>(ExitCode::kUsage);
  }
  if (args[0] == "--help" || args[0] == "-h" || args[0] == "help") {
    fmt::print("{}", program_help());
    return static_cast<int>(ExitCode::kOk);
  }
  if (args[0] == "--version") {
    fmt::print("fathom {}\n", FATHOM_VERSION);
    return static_cast<int>(ExitCode::kOk);
  }
  return run_command(commands().at(args[0]), {args.begin() + 1, args.end()});
}

}  // namespace

const Registry<CommandEntry>& commands() {
  static const Registry<CommandEntry> registry("command", {
#define FATHOM_COMMAND(name) entries::name##_entry(),
#include "harness/cli/commands.inc"
#undef FATHOM_COMMAND
                                                          });
  return registry;
}

std::string program_help() {
  std::string text = "fathom: how much of its context does a transformer really use?\n\nusage: fathom COMMAND ...\n\n";
  for (const CommandEntry& command : commands().entries()) {
    text += fmt::format("  {:<10} {}\n", command.name, command.summary);
  }
  return text + "\nfathom COMMAND --help shows options and an example; fathom --version the version\n";
}

std::string command_help(const CommandEntry& command) {
  std::string text = fmt::format("usage: {}\n\n{}\n", usage_line(command), command.details);
  if (!command.positionals.empty()) text += "\n";
  for (const PositionalSpec& positional : command.positionals) {
    text += fmt::format("  {:<24} {}\n", positional.name, positional.help);
  }
  text += "\noptions:\n";
  for (const OptionSpec& option : command.options) {
    text += fmt::format("  {:<24} {}\n", fmt::format("--{} {}", option.name, option.value_name), option.help);
  }
  text += fmt::format("  {:<24} {}\n", "--help", "show this text");
  text += "\nexamples:\n";
  for (const std::string_view example : command.examples) text += fmt::format("  {}\n", example);
  return text;
}

int run_program(const std::vector<std::string>& args) {
  try {
    return dispatch(args);
  } catch (const Error& error) {
    fmt::print(stderr, "fathom: {}\n", error.what());
    return static_cast<int>(error.exit_code());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "fathom: out of memory; use a shorter length, a smaller engine.batch_tokens or --dtype bf16\n");
    return static_cast<int>(ExitCode::kFailure);
  } catch (const std::exception& error) {
    fmt::print(stderr, "fathom: bug: unexpected error: {}\n", error.what());
    return static_cast<int>(ExitCode::kBug);
  }
}

}  // namespace fathom::cli
