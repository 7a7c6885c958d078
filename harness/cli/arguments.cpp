#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>

#include "harness/cli/command.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::cli {
namespace {

namespace po = boost::program_options;

po::options_description describe_arguments(const CommandEntry& command) {
  po::options_description description;
  for (const OptionSpec& option : command.options) {
    if (option.value_name.empty()) {
      description.add_options()(option.name.c_str(), "");
    } else {
      description.add_options()(option.name.c_str(), po::value<std::vector<std::string>>(), "");
    }
  }
  // The positionals: collected under one name, distributed by hand so that too many can be told.
  description.add_options()("positional arguments", po::value<std::vector<std::string>>(), "");
  return description;
}

[[noreturn]] void throw_unknown_argument(const CommandEntry& command, const std::string& given) {
  std::vector<std::string> known;
  for (const OptionSpec& option : command.options) known.push_back("--" + option.name);
  const auto near = nearest_name(given, known);
  throw ConfigError(fmt::format("{}: unknown option '{}'{}; fathom {} --help lists them", command.name, given,
                                near ? fmt::format("; did you mean '{}'?", *near) : std::string(), command.name));
}

void check_option(const CommandEntry& command, const OptionSpec& option, const std::vector<std::string>& given) {
  if (option.count == OptionSpec::Count::kOnce && given.size() > 1) {
    throw ConfigError(
        fmt::format("{}: --{} is given {} times; once is allowed", command.name, option.name, given.size()));
  }
  for (const std::string& value : given) {
    const bool allowed = option.allowed.empty() ||
                         std::find(option.allowed.begin(), option.allowed.end(), value) != option.allowed.end();
    if (!allowed) {
      throw ConfigError(
          fmt::format("{}: --{} {} is not one of {}", command.name, option.name, value, join(option.allowed, ", ")));
    }
  }
}

void assign_positionals(const CommandEntry& command, const std::vector<std::string>& given, Arguments& arguments) {
  if (given.size() > command.positionals.size()) {
    throw ConfigError(fmt::format("{}: unexpected argument '{}'; fathom {} --help shows the usage", command.name,
                                  given[command.positionals.size()], command.name));
  }
  for (std::size_t i = 0; i < command.positionals.size(); ++i) {
    const PositionalSpec& positional = command.positionals[i];
    if (i < given.size()) {
      arguments.values[positional.name] = {given[i]};
    } else if (positional.need == PositionalSpec::Need::kRequired) {
      throw ConfigError(fmt::format("{}: {} is missing; for example: {}", command.name, positional.name,
                                    command.examples.empty() ? "" : command.examples.front()));
    }
  }
}

}  // namespace

bool Arguments::has(std::string_view name) const {
  return values.find(name) != values.end();
}

std::optional<std::string> Arguments::get(std::string_view name) const {
  const auto found = values.find(name);
  if (found == values.end() || found->second.empty()) return std::nullopt;
  return found->second.front();
}

std::string Arguments::get_or(std::string_view name, std::string_view fallback) const {
  return get(name).value_or(std::string(fallback));
}

std::vector<std::string> Arguments::all(std::string_view name) const {
  const auto found = values.find(name);
  return found == values.end() ? std::vector<std::string>() : found->second;
}

std::optional<std::int64_t> Arguments::integer(std::string_view name, std::int64_t low, std::int64_t high) const {
  const auto text = get(name);
  if (!text) return std::nullopt;
  const auto value = parse_int(*text);
  if (!value || *value < low || *value > high) {
    throw ConfigError(fmt::format("--{} {} is not an integer in {}..{}", name, *text, low, high));
  }
  return value;
}

Arguments parse_arguments(const CommandEntry& command, const std::vector<std::string>& args) {
  const po::options_description description = describe_arguments(command);
  po::positional_options_description positional;
  positional.add("positional arguments", -1);
  namespace style = po::command_line_style;
  // No guessing: a prefix of an option is not that option.
  const int strict = style::unix_style & ~style::allow_guessing & ~style::allow_short;
  Arguments arguments;
  try {
    const po::parsed_options parsed =
        po::command_line_parser(args).options(description).positional(positional).style(strict).run();
    std::vector<std::string> loose;
    for (const po::option& option : parsed.options) {
      auto& target = option.position_key >= 0 ? loose : arguments.values[option.string_key];
      target.insert(target.end(), option.value.begin(), option.value.end());
    }
    assign_positionals(command, loose, arguments);
  } catch (const po::unknown_option& error) {
    throw_unknown_argument(command, error.get_option_name());
  } catch (const po::error& error) {
    throw ConfigError(fmt::format("{}: {}", command.name, error.what()));
  }
  for (const OptionSpec& option : command.options) check_option(command, option, arguments.all(option.name));
  return arguments;
}

}  // namespace fathom::cli
