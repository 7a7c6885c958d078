#include "harness/core/options.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom {
namespace {

std::string option_range_text(IntegerRange range) {
  if (range.low == INT64_MIN && range.high == INT64_MAX) return "";
  if (range.high == INT64_MAX) return fmt::format(">= {}", range.low);
  return fmt::format("{}..{}", range.low, range.high);
}

std::string option_range_text(RealRange range) {
  return fmt::format("{}..{}", format_double(range.low), format_double(range.high));
}

}  // namespace

const std::string* OptionReader::claim(std::string_view name) {
  declared_.insert(std::string(name));
  const auto found = source_.values().find(std::string(name));
  return found == source_.values().end() ? nullptr : &found->second;
}

void OptionReader::complain(std::string_view name, const std::string& value, const std::string& what) {
  problems_.push_back(fmt::format("{} {} = {} {}", source_.where(), name, value, what));
}

void OptionReader::integer(std::string_view name, std::int64_t& value, IntegerRange range, std::string_view) {
  const std::string* given = claim(name);
  if (given == nullptr) return;
  const auto parsed = parse_int(*given);
  if (!parsed) {
    complain(name, *given, "is not an integer");
  } else if (*parsed < range.low || *parsed > range.high) {
    complain(name, *given, "is outside " + option_range_text(range));
  } else {
    value = *parsed;
  }
}

void OptionReader::real(std::string_view name, double& value, RealRange range, std::string_view) {
  const std::string* given = claim(name);
  if (given == nullptr) return;
  const auto parsed = parse_double(*given);
  if (!parsed) {
    complain(name, *given, "is not a number");
  } else if (*parsed < range.low || *parsed > range.high) {
    complain(name, *given, "is outside " + option_range_text(range));
  } else {
    value = *parsed;
  }
}

void OptionReader::text(std::string_view name, std::string& value, std::string_view) {
  if (const std::string* given = claim(name)) value = *given;
}

void OptionReader::flag(std::string_view name, bool& value, std::string_view) {
  const std::string* given = claim(name);
  if (given == nullptr) return;
  if (*given != "on" && *given != "off") {
    complain(name, *given, "must be on or off");
  } else {
    value = *given == "on";
  }
}

void OptionReader::choice(std::string_view name, std::string& value, const std::vector<std::string>& allowed,
                          std::string_view) {
  const std::string* given = claim(name);
  if (given == nullptr) return;
  if (std::find(allowed.begin(), allowed.end(), *given) == allowed.end()) {
    complain(name, *given, "must be one of " + join(allowed, ", "));
  } else {
    value = *given;
  }
}

void OptionReader::optional_integer(std::string_view name, std::optional<std::int64_t>& value, IntegerRange range,
                                    std::string_view help) {
  const std::string* given = claim(name);
  if (given == nullptr) return;
  if (*given == "auto") {
    value.reset();
    return;
  }
  std::int64_t parsed = value.value_or(range.low);
  integer(name, parsed, range, help);
  value = parsed;
}

void OptionReader::optional_real(std::string_view name, std::optional<double>& value, RealRange range,
                                 std::string_view help) {
  const std::string* given = claim(name);
  if (given == nullptr) return;
  if (*given == "auto") {
    value.reset();
    return;
  }
  double parsed = value.value_or(range.low);
  real(name, parsed, range, help);
  value = parsed;
}

void OptionReader::text_list(std::string_view name, std::vector<std::string>& value, std::string_view) {
  const std::string* given = claim(name);
  if (given == nullptr) return;
  std::vector<std::string> parts = split_list(*given);
  if (parts.empty()) {
    complain(name, *given, "is an empty list");
  } else if (std::find(parts.begin(), parts.end(), "") != parts.end()) {
    complain(name, *given, "has an empty entry");
  } else {
    value = std::move(parts);
  }
}

std::vector<std::string> OptionReader::problems() const {
  std::vector<std::string> all = problems_;
  const std::vector<std::string> known(declared_.begin(), declared_.end());
  for (const auto& [key, value] : source_.values()) {
    if (declared_.count(key) != 0) continue;
    const auto near = nearest_name(key, known);
    all.push_back(
        fmt::format("{} unknown key '{}'{}", source_.where(), key,
                    near ? fmt::format("; did you mean '{}'?", *near)
                         : (known.empty() ? std::string("; it takes no options") : "; known: " + join(known, ", "))));
  }
  return all;
}

void OptionReader::throw_problems() const {
  const std::vector<std::string> all = problems();
  if (!all.empty()) throw ConfigError("config: " + join(all, "\nconfig: "));
}

void OptionDescriber::integer(std::string_view name, std::int64_t& value, IntegerRange range, std::string_view help) {
  descriptions_.push_back(
      {std::string(name), "integer", std::to_string(value), option_range_text(range), std::string(help)});
}

void OptionDescriber::real(std::string_view name, double& value, RealRange range, std::string_view help) {
  descriptions_.push_back(
      {std::string(name), "number", format_double(value), option_range_text(range), std::string(help)});
}

void OptionDescriber::text(std::string_view name, std::string& value, std::string_view help) {
  descriptions_.push_back({std::string(name), "text", value, "", std::string(help)});
}

void OptionDescriber::flag(std::string_view name, bool& value, std::string_view help) {
  descriptions_.push_back({std::string(name), "on/off", value ? "on" : "off", "on, off", std::string(help)});
}

void OptionDescriber::choice(std::string_view name, std::string& value, const std::vector<std::string>& allowed,
                             std::string_view help) {
  descriptions_.push_back({std::string(name), "choice", value, join(allowed, ", "), std::string(help)});
}

void OptionDescriber::optional_integer(std::string_view name, std::optional<std::int64_t>& value, IntegerRange range,
                                       std::string_view help) {
  descriptions_.push_back({std::string(name), "integer or auto", value ? std::to_string(*value) : "auto",
                           option_range_text(range), std::string(help)});
}

void OptionDescriber::optional_real(std::string_view name, std::optional<double>& value, RealRange range,
                                    std::string_view help) {
  descriptions_.push_back({std::string(name), "number or auto", value ? format_double(*value) : "auto",
                           option_range_text(range), std::string(help)});
}

void OptionDescriber::text_list(std::string_view name, std::vector<std::string>& value, std::string_view help) {
  descriptions_.push_back({std::string(name), "list", join(value, ", "), "", std::string(help)});
}

std::string OptionDescriber::canonical() const {
  std::string out;
  for (const OptionDescription& option : descriptions_) {
    if (!out.empty()) out += ';';
    out += option.name + '=' + option.default_value;
  }
  return out;
}

}  // namespace fathom
