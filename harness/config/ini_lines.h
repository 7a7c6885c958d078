#pragma once
// Where things stand in an INI text. Boost.Program_options reads the values but knows neither line numbers nor repeats
// of keys it was not told of, and takes "[]" for a valid section; this scan finds all three first.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::config {

struct IniSection {
  std::string name;  ///< without brackets
  std::int64_t line = 0;
};

struct IniLines {
  std::vector<IniSection> sections;                ///< headers in the order of the file
  std::map<std::string, std::int64_t> first_line;  ///< "section.key" -> line, counted from 1
  std::map<std::int64_t, std::string> problems;    ///< by line: what cannot be read, and repeated keys
};

/// \param text  without byte-order mark.
IniLines scan_ini(std::string_view text);

}  // namespace fathom::config
