#include "harness/store/config_diff.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "harness/core/text_util.h"

namespace fathom::store {
namespace {

using ConfigLines = std::vector<std::pair<std::string, std::string>>;

/// `key = value` lines in order, each key with its section in front.
ConfigLines read_config_lines(std::string_view text) {
  ConfigLines lines;
  std::string section;
  for (const std::string& raw : split(text, '\n')) {
    const std::string_view line = trim(raw);
    if (line.empty() || line.front() == '#') continue;
    if (line.front() == '[' && line.back() == ']') {
      section = std::string(line.substr(1, line.size() - 2)) + ".";
      continue;
    }
    const auto equals = line.find('=');
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : trim(line.substr(equals + 1));
    lines.emplace_back(section + std::string(trim(line.substr(0, equals))), std::string(value));
  }
  return lines;
}

std::string shown_value(const std::string& value) {
  return value.empty() ? "(empty)" : value;
}

}  // namespace

std::vector<std::string> config_differences(std::string_view before, std::string_view now) {
  const ConfigLines old_lines = read_config_lines(before);
  const ConfigLines new_lines = read_config_lines(now);
  const std::map<std::string, std::string> old_values(old_lines.begin(), old_lines.end());
  const std::map<std::string, std::string> new_values(new_lines.begin(), new_lines.end());
  std::vector<std::string> out;
  for (const auto& [key, value] : old_lines) {
    const auto found = new_values.find(key);
    if (found == new_values.end()) {
      out.push_back(fmt::format("{}: {} before, absent now", key, shown_value(value)));
    } else if (found->second != value) {
      out.push_back(fmt::format("{}: {} before, {} now", key, shown_value(value), shown_value(found->second)));
    }
  }
  for (const auto& [key, value] : new_lines) {
    if (old_values.count(key) == 0) out.push_back(fmt::format("{}: absent before, {} now", key, shown_value(value)));
  }
  return out;
}

}  // namespace fathom::store
