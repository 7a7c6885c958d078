#pragma once
// UTF-8, one character at a time.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace fathom::text {

struct Utf8Char {
  std::uint32_t code = 0;
  std::size_t size_bytes = 0;  ///< 1 to 4
  bool valid = false;          ///< false: one byte that begins no well-formed character; `code` is that byte
};

/// The character at `at`, which is inside the text.
Utf8Char decode_utf8(std::string_view text, std::size_t at);

/// A stretch of well-formed UTF-8, or one byte that belongs to none.
struct Utf8Run {
  std::string_view text;
  bool valid;
};
std::vector<Utf8Run> utf8_runs(std::string_view text);

}  // namespace fathom::text
