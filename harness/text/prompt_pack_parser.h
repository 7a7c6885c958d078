#pragma once
// The lines of a prompt-pack file as sections, keys and texts, each with its place. Knows the syntax only; which keys a
// pack may have is prompt_pack.cpp's business.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::text {

/// Both from 1; columns count characters, not bytes.
struct PackPlace {
  std::size_t line = 1;
  std::size_t column = 1;
};

struct PackSlot {
  std::string name;
  PackPlace place;
};

struct PackSection {
  std::string name;  ///< "niah"
  std::string task;  ///< "niah_multikey_2" in [niah.niah_multikey_2], else empty
  PackPlace place;

  std::string title() const { return task.empty() ? name : name + "." + task; }
};

struct PackEntry {
  PackSection section;
  std::string key;     ///< without its suffix
  std::string suffix;  ///< "", ".one", ".many" or ".inv"
  std::string value;   ///< escapes done, slots in place
  std::vector<PackSlot> slots;
  PackPlace place;

  std::string full_key() const { return key + suffix; }
};

struct PackLines {
  std::vector<PackSection> sections;
  std::vector<PackEntry> entries;
  PackPlace end;
};

/// \throws ConfigError `SOURCE:LINE:COLUMN: message`.
[[noreturn]] void fail_pack(const std::string& source, const PackPlace& place, const std::string& message);

/// \throws ConfigError  for bad UTF-8, NUL, a line that is none, an unknown suffix or escape, a bad slot, a key given
/// twice, `+=` without a key.
PackLines parse_pack_lines(std::string_view text, const std::string& source);

}  // namespace fathom::text
