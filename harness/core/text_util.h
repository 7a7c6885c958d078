#pragma once
// Text helpers without locale: ASCII only, so results are the same on every machine.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fathom {

std::string_view trim(std::string_view text);
std::vector<std::string> split(std::string_view text, char separator);
/// Pieces trimmed; an empty text gives an empty list, an empty piece stays as an empty string.
std::vector<std::string> split_list(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string ascii_lower(std::string_view text);
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);
bool starts_with(std::string_view text, std::string_view prefix);
bool ends_with(std::string_view text, std::string_view suffix);

/// The whole text as a number, or nothing: no blanks, no trailing characters, no overflow.
std::optional<std::int64_t> parse_int(std::string_view text);
/// Finite decimal numbers only ("1e5", "0.25"); no "nan", no "inf".
std::optional<double> parse_double(std::string_view text);
/// Shortest text that reads back as the same double.
std::string format_double(double value);

/// True if the bytes are well-formed UTF-8 (no surrogates, no overlong forms).
bool is_valid_utf8(std::string_view bytes);

/// Smallest number of insertions, deletions, replacements and swaps of neighbours between a and b.
std::size_t edit_distance(std::string_view a, std::string_view b);
/// The candidate nearest to `name`, if near enough to be a plausible misspelling.
std::optional<std::string> nearest_name(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace fathom
