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

/// The last character of a text that is not empty.
Utf8Char last_utf8(std::string_view text);

/// Bytes of Unicode's White_Space at the front.
std::size_t leading_space(std::string_view text);
/// Bytes up to the last character that is no White_Space.
std::size_t without_trailing_space(std::string_view text);

/// A stretch of well-formed UTF-8, or one byte that belongs to none.
struct Utf8Run {
  std::string_view text;
  bool valid;
};
/// None is empty.
std::vector<Utf8Run> utf8_runs(std::string_view text);

}  // namespace fathom::text
