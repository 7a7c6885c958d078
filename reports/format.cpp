#include "reports/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "harness/core/text_util.h"
#include "harness/core/types.h"

namespace fathom::reports {
namespace {

/// One decoded character and how many bytes it took; malformed bytes give U+FFFD and 1.
struct DecodedCharacter {
  char32_t value = 0xFFFD;
  std::size_t size_bytes = 1;
};

DecodedCharacter decode_character(std::string_view bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || bytes.size() < size) return {};
  char32_t value = first & (0xFFU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {};
    value = (value << 6U) | (byte(i) & 0x3FU);
  }
  constexpr std::array<char32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kSmallest[size] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return {};
  return {value, size};
}

bool is_zero_width(char32_t c) {
  return (c >= 0x0300 && c <= 0x036F) || (c >= 0x200B && c <= 0x200F) || (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2060 && c <= 0x2064) || (c >= 0xFE00 && c <= 0xFE0F) || (c >= 0x20D0 && c <= 0x20FF) || c == 0xFEFF;
}

bool is_wide(char32_t c) {
  return (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0x303E) || (c >= 0x3041 && c <= 0xA4CF) ||
         (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFE30 && c <= 0xFE6F) ||
         (c >= 0xFF00 && c <= 0xFF60) || (c >= 0xFFE0 && c <= 0xFFE6) || (c >= 0x1F300 && c <= 0x1F64F) ||
         (c >= 0x1F900 && c <= 0x1F9FF) || (c >= 0x20000 && c <= 0x3FFFD);
}

int character_width(char32_t c) {
  return is_zero_width(c) ? 0 : is_wide(c) ? 2 : 1;
}

/// The longest beginning that fits, and its width.
std::pair<std::string, int> cut_to_width(std::string_view utf8, int columns) {
  if (display_width(utf8) <= columns) return {std::string(utf8), display_width(utf8)};
  std::string out;
  int width = 0;
  for (std::size_t i = 0; i < utf8.size();) {
    const DecodedCharacter c = decode_character(utf8.substr(i));
    if (width + character_width(c.value) > columns - 1) break;
    out += utf8.substr(i, c.size_bytes);
    width += character_width(c.value);
    i += c.size_bytes;
  }
  return {out + "…", width + 1};
}

std::string fixed_percent(double fraction, int digits) {
  return fmt::format("{:.{}f}", 100 * fraction, digits);
}

/// How many words all lists begin with, so that each keeps one at least.
std::size_t shared_words(const std::vector<std::vector<std::string>>& lists) {
  std::size_t n = 0;
  const auto shares = [&](const std::vector<std::string>& words) {
    return n + 1 < words.size() && words[n] == lists.front()[n];
  };
  while (std::all_of(lists.begin(), lists.end(), shares)) ++n;
  return n;
}

std::string place_text(const analysis::EffectiveValue& value) {
  if (value.kind == analysis::Censoring::kLeft) return fmt::format("<{}", value.first_tested.value());
  return format_tokens(value.tokens.value());
}

}  // namespace

DistinctNames distinct_names(const std::vector<std::string>& names) {
  if (names.size() < 2) return {names, ""};
  std::vector<std::vector<std::string>> words;
  words.reserve(names.size());
  for (const std::string& name : names) words.push_back(split(name, ' '));
  const auto leave_out = [&words](std::size_t n) {
    std::vector<std::string> shared(words.front().begin(), words.front().begin() + static_cast<std::ptrdiff_t>(n));
    for (auto& list : words) list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(n));
    return shared;
  };
  const auto reverse_all = [&words] {
    for (auto& list : words) std::reverse(list.begin(), list.end());
  };
  const std::string front = join(leave_out(shared_words(words)), " ");
  reverse_all();
  std::vector<std::string> back_words = leave_out(shared_words(words));
  std::reverse(back_words.begin(), back_words.end());
  reverse_all();
  const std::string back = join(back_words, " ");
  DistinctNames out;
  for (const auto& list : words) out.names.push_back(join(list, " "));
  if (!front.empty() || !back.empty()) {
    out.shared = fmt::format("{}{}…{}{}", front, front.empty() ? "" : " ", back.empty() ? "" : " ", back);
  }
  return out;
}

std::string format_tokens(std::int64_t tokens) {
  return std::to_string(tokens);
}

std::string k_form(std::int64_t tokens) {
  if (tokens < kTokensPerK || tokens % kTokensPerK != 0) return "";
  if (tokens >= kTokensPerK * kTokensPerK && tokens % (kTokensPerK * kTokensPerK) == 0) {
    return fmt::format("{}M", tokens / (kTokensPerK * kTokensPerK));
  }
  return fmt::format("{}K", tokens / kTokensPerK);
}

std::string format_tokens_short(std::int64_t tokens) {
  const std::string k = k_form(tokens);
  return k.empty() ? format_tokens(tokens) : k;
}

std::string format_percent(double fraction, std::int64_t n_values) {
  constexpr int kMostDigits = 3;
  for (int digits = n_values >= 1000 ? 1 : 0; digits < kMostDigits; ++digits) {
    const std::string text = fixed_percent(fraction, digits);
    const bool looks_perfect = text == fixed_percent(1, digits) && fraction < 1;
    const bool looks_empty = text == fixed_percent(0, digits) && fraction > 0;
    if (looks_perfect || looks_empty) continue;
    return fraction == 1 ? "100" : fraction == 0 ? "0" : text;
  }
  return fraction < 0.5 ? "<0.01" : ">99.99";
}

std::string format_percent_range(double low, double high, std::int64_t n_values) {
  // Ends of an interval are no scores: "100" is as far as it goes.
  const int digits = n_values >= 1000 ? 1 : 0;
  return fmt::format("{}–{}", fixed_percent(low, digits), fixed_percent(high, digits));
}

std::string format_depth(std::int32_t depth_bp) {
  std::string text = fmt::format("{:.2f}", depth_bp / 100.0);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string format_effective_text(const analysis::EffectiveValue& value) {
  switch (value.kind) {
    case analysis::Censoring::kExact:
    case analysis::Censoring::kLeft:
      return place_text(value);
    case analysis::Censoring::kRight:
      return "≥" + place_text(value);
    case analysis::Censoring::kNone:
      break;
  }
  return std::string(kNothing);
}

std::string format_effective_range(const std::optional<analysis::EffectiveValue>& low,
                                   const std::optional<analysis::EffectiveValue>& high) {
  if (!low || !high) return std::string(kNothing);
  const std::string first = format_effective_text(*low);
  const std::string last = format_effective_text(*high);
  return first == last ? first : first + "–" + last;
}

std::string format_multiple(const analysis::EffectiveValue& value, std::int64_t trained_tokens) {
  if (value.kind == analysis::Censoring::kNone || trained_tokens <= 0) return std::string(kNothing);
  const std::int64_t tokens = value.tokens ? *value.tokens : value.first_tested.value();
  const double ratio = static_cast<double>(tokens) / static_cast<double>(trained_tokens);
  const char* sign = value.kind == analysis::Censoring::kRight  ? "≥"
                     : value.kind == analysis::Censoring::kLeft ? "<"
                                                                : "";
  return fmt::format("{}{:.2g}×", sign, ratio);
}

std::string format_seconds(double seconds) {
  if (seconds < 10) return fmt::format("{:.2f} s", seconds);
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

std::string format_bytes(std::int64_t bytes) {
  const double mebibytes = static_cast<double>(bytes) / (1 << 20);
  if (mebibytes < 1024) return fmt::format("{:.0f} MiB", mebibytes);
  return fmt::format("{:.1f} GiB", mebibytes / 1024);
}

std::string format_count(std::int64_t count) {
  std::string digits = std::to_string(count < 0 ? -count : count);
  for (std::size_t i = digits.size(); i > 3;) {
    i -= 3;
    digits.insert(i, ",");
  }
  return count < 0 ? "-" + digits : digits;
}

std::string visible_text(std::string_view bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size();) {
    const DecodedCharacter c = decode_character(bytes.substr(i));
    if (c.value == '\n') {
      out += "⏎";
    } else if (c.value == '\t') {
      out += " ";
    } else if (c.value < 0x20) {
      // U+2400 and on: pictures of the control characters.
      out += fmt::format("\xE2\x90{}", static_cast<char>(0x80 + c.value));
    } else if (c.value == 0x7F) {
      out += "␡";
    } else if (c.value == 0xFFFD || (c.value >= 0x80 && c.value < 0xA0) || (c.value >= 0x202A && c.value <= 0x202E) ||
               (c.value >= 0x2066 && c.value <= 0x2069) || (c.value & 0xFFFEU) == 0xFFFEU) {
      out += "\xEF\xBF\xBD";
    } else {
      out += bytes.substr(i, c.size_bytes);
    }
    i += c.size_bytes;
  }
  return out;
}

int display_width(std::string_view utf8) {
  int width = 0;
  for (std::size_t i = 0; i < utf8.size();) {
    const DecodedCharacter c = decode_character(utf8.substr(i));
    width += character_width(c.value);
    i += c.size_bytes;
  }
  return width;
}

std::string fit_left(std::string_view utf8, int columns) {
  auto [text, width] = cut_to_width(utf8, columns);
  return text + std::string(static_cast<std::size_t>(std::max(0, columns - width)), ' ');
}

std::string fit_right(std::string_view utf8, int columns) {
  auto [text, width] = cut_to_width(utf8, columns);
  return std::string(static_cast<std::size_t>(std::max(0, columns - width)), ' ') + text;
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string escape_markdown(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
      continue;
    }
    if (c == '&') {
      out += "&amp;";
      continue;
    }
    if (std::string_view("\\`*_[]|~").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace fathom::reports
