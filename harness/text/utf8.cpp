#include "harness/text/utf8.h"

#include "harness/core/text_util.h"

namespace fathom::text {
namespace {

/// Unicode's White_Space, by its code points.
bool is_unicode_space(std::uint32_t code) {
  return (code >= 9 && code <= 13) || code == 32 || code == 0x85 || code == 0xA0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F ||
         code == 0x3000;
}

}  // namespace

Utf8Char decode_utf8(std::string_view text, std::size_t at) {
  const auto byte = [text](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  const std::uint32_t lead = byte(at);
  if (lead < 0x80) return {lead, 1, true};
  const Utf8Char broken{lead, 1, false};
  if (lead < 0xC2 || lead > 0xF4) return broken;
  const std::size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (at + size > text.size()) return broken;
  std::uint32_t code = lead & (0xFFU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    const std::uint32_t next = byte(at + i);
    if ((next & 0xC0U) != 0x80U) return broken;
    code = (code << 6U) | (next & 0x3FU);
  }
  const bool overlong = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (overlong || surrogate || code > 0x10FFFF) return broken;
  return {code, size, true};
}

Utf8Char last_utf8(std::string_view text) {
  for (std::size_t size = 2; size <= 4 && size <= text.size(); ++size) {
    const Utf8Char c = decode_utf8(text, text.size() - size);
    if (c.valid && c.size_bytes == size) return c;
  }
  return decode_utf8(text, text.size() - 1);
}

std::size_t leading_space(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Utf8Char c = decode_utf8(text, at);
    if (!c.valid || !is_unicode_space(c.code)) break;
    at += c.size_bytes;
  }
  return at;
}

std::size_t without_trailing_space(std::string_view text) {
  // From the end, for the text may be long and asked about often.
  while (!text.empty()) {
    const Utf8Char c = last_utf8(text);
    if (!c.valid || !is_unicode_space(c.code)) break;
    text.remove_suffix(c.size_bytes);
  }
  return text.size();
}

std::vector<Utf8Run> utf8_runs(std::string_view text) {
  if (text.empty()) return {};
  if (is_valid_utf8(text)) return {{text, true}};
  std::vector<Utf8Run> runs;
  std::size_t begin = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const Utf8Char c = decode_utf8(text, at);
    if (!c.valid) {
      if (at > begin) runs.push_back({text.substr(begin, at - begin), true});
      runs.push_back({text.substr(at, 1), false});
      begin = at + 1;
    }
    at += c.size_bytes;
  }
  if (at > begin) runs.push_back({text.substr(begin), true});
  return runs;
}

}  // namespace fathom::text
