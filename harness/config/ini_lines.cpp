#include "harness/config/ini_lines.h"

#include <fmt/format.h>

#include <optional>

#include "harness/core/text_util.h"

namespace fathom::config {
namespace {

std::optional<std::string> ini_text_problem(std::string_view line) {
  if (line.find('\0') != std::string_view::npos) return "a NUL byte; the file must be text";
  if (!is_valid_utf8(line)) return "bytes that are not UTF-8; save the file as UTF-8 text";
  return std::nullopt;
}

std::optional<std::string> ini_section_problem(std::string_view name) {
  if (name.empty()) return "a section without a name; write for example [model]";
  if (name.find_first_of(" \t[]") != std::string_view::npos) {
    return fmt::format("section [{}] has a blank or bracket in its name; write for example [model]", name);
  }
  if (name.front() == '.' || name.back() == '.' || name.find("..") != std::string_view::npos) {
    return fmt::format("section [{}] has an empty part between its dots", name);
  }
  return std::nullopt;
}

std::string ini_unreadable(std::string_view line) {
  if (line.front() == ';') return fmt::format("'{}' starts with ';', which is no comment here; use '#'", line);
  if (line.front() == '[') return fmt::format("section '{}' lacks its closing bracket", line);
  return fmt::format("'{}' is neither [section] nor key = value nor a # comment", line);
}

class IniScanner {
 public:
  void add_line(std::string_view raw) {
    ++number_;
    if (const auto problem = ini_text_problem(raw)) {
      complain(*problem);
      return;
    }
    const std::string_view line = trim(raw.substr(0, raw.find('#')));
    if (line.empty()) return;
    if (line.front() == '[' && line.back() == ']') {
      add_section(line.substr(1, line.size() - 2));
    } else {
      add_key(line);
    }
  }

  IniLines take() { return std::move(lines_); }

 private:
  void complain(const std::string& problem) { lines_.problems.emplace(number_, problem); }

  void add_section(std::string_view name) {
    if (const auto problem = ini_section_problem(name)) complain(*problem);
    lines_.sections.push_back({std::string(name), number_});
    prefix_ = std::string(name) + ".";
  }

  void add_key(std::string_view line) {
    const auto equals = line.find('=');
    if (equals == std::string_view::npos) {
      complain(ini_unreadable(line));
      return;
    }
    const std::string_view key = trim(line.substr(0, equals));
    if (key.empty()) {
      complain(fmt::format("'{}' has no key before '='", line));
      return;
    }
    const auto [found, is_new] = lines_.first_line.emplace(prefix_ + std::string(key), number_);
    if (!is_new) {
      complain(fmt::format("key '{}' is given twice; it stands in line {} too, keep one (a list is one line: a, b)",
                           found->first, found->second));
    }
  }

  IniLines lines_;
  std::string prefix_;
  std::int64_t number_ = 0;
};

}  // namespace

IniLines scan_ini(std::string_view text) {
  IniScanner scanner;
  for (const std::string& line : split(text, '\n')) scanner.add_line(line);
  return scanner.take();
}

}  // namespace fathom::config
