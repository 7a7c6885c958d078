#include "harness/text/byte_spelling.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "harness/core/text_util.h"
#include "harness/text/utf8.h"

namespace fathom::text {
namespace {

// GPT-2 spells the visible bytes as themselves (Latin-1) and the other 68 as U+0100 and up, in byte order.
std::array<std::uint32_t, 256> visible_characters() {
  std::array<std::uint32_t, 256> characters{};
  std::uint32_t next = 0x100;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    const bool visible = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
    characters[byte] = visible ? byte : next++;
  }
  return characters;
}

}  // namespace

std::optional<std::string> bytes_of_spelling(std::string_view spelling) {
  static const std::unordered_map<std::uint32_t, char> byte_of = [] {
    std::unordered_map<std::uint32_t, char> table;
    const auto characters = visible_characters();
    for (std::size_t byte = 0; byte < 256; ++byte) table[characters[byte]] = static_cast<char>(byte);
    return table;
  }();
  std::string bytes;
  for (std::size_t at = 0; at < spelling.size();) {
    const Utf8Char c = decode_utf8(spelling, at);
    const auto found = byte_of.find(c.code);
    if (!c.valid || found == byte_of.end()) return std::nullopt;
    bytes += found->second;
    at += c.size_bytes;
  }
  return bytes;
}

std::optional<std::string> byte_of_hex_token(std::string_view piece) {
  if (piece.size() != 6 || !starts_with(piece, "<0x") || piece.back() != '>') return std::nullopt;
  unsigned value = 0;
  for (const char c : piece.substr(3, 2)) {
    const auto digit = std::string_view("0123456789abcdef").find(ascii_lower(std::string_view(&c, 1)).front());
    if (digit == std::string_view::npos) return std::nullopt;
    value = value * 16 + static_cast<unsigned>(digit);
  }
  return std::string(1, static_cast<char>(value));
}

}  // namespace fathom::text
