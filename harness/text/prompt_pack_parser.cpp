#include "harness/text/prompt_pack_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::text {
namespace {

constexpr std::string_view kPackBlanks = " \t";
constexpr std::string_view kPackSuffixes[] = {".one", ".many", ".inv"};

bool is_pack_word(std::string_view word) {
  if (word.empty() || word.front() < 'a' || word.front() > 'z') return false;
  return std::all_of(word.begin(), word.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

class PackLineParser {
 public:
  PackLineParser(std::string_view text, const std::string& source) : text_(text), source_(source) {}

  PackLines parse() {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (starts_with(text_, kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
    std::size_t begin = 0;
    while (begin < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', begin), text_.size());
      ++line_number_;
      line_ = text_.substr(begin, end - begin);
      if (!line_.empty() && line_.back() == '\r') line_.remove_suffix(1);
      check_bytes();
      parse_line();
      begin = end + 1;
    }
    out_.end = {std::max<std::size_t>(line_number_, 1), 1};
    return std::move(out_);
  }

 private:
  PackPlace place(std::size_t offset) const { return {line_number_, count_characters(line_.substr(0, offset)) + 1}; }
  [[noreturn]] void fail(std::size_t offset, const std::string& message) const {
    fail_pack(source_, place(offset), message);
  }

  void check_bytes() const {
    const auto nul = line_.find('\0');
    if (nul != std::string_view::npos) fail(nul, "a NUL byte; a prompt pack is UTF-8 text");
    if (is_valid_utf8(line_)) return;
    std::size_t good = 0;  // steps over one character after the other; stops at the first that is none
    for (std::size_t size = 1; size <= 4 && good + size <= line_.size();) {
      const bool character = is_valid_utf8(line_.substr(good, size));
      good += character ? size : 0;
      size = character ? 1 : size + 1;
    }
    fail(good,
         fmt::format("byte 0x{:02X} is not UTF-8", static_cast<unsigned>(static_cast<unsigned char>(line_[good]))));
  }

  void parse_line() {
    const auto first = line_.find_first_not_of(kPackBlanks);
    if (first == std::string_view::npos || line_.front() == '#' || line_.front() == ';') return;
    if (line_[first] == '[') {
      parse_section(first);
    } else {
      parse_entry(first);
    }
  }

  void parse_section(std::size_t first) {
    const std::size_t last = line_.find_last_not_of(kPackBlanks);
    if (line_[last] != ']') fail(first, fmt::format("section '{}' does not end in ']'", line_.substr(first)));
    const std::string_view title = trim(line_.substr(first + 1, last - first - 1));
    const auto dot = title.find('.');
    PackSection section{std::string(title.substr(0, dot)), "", place(first)};
    if (dot != std::string_view::npos) section.task = std::string(title.substr(dot + 1));
    if (!is_pack_word(section.name) || (dot != std::string_view::npos && !is_pack_word(section.task))) {
      fail(first, fmt::format("'[{}]' is no section; write [section] or [section.task] in lower case", title));
    }
    out_.sections.push_back(section);
  }

  void parse_entry(std::size_t first) {
    const auto equals = line_.find('=', first);
    if (equals == std::string_view::npos) {
      fail(first, fmt::format("'{}' is no 'key = value', section or comment", trim(line_)));
    }
    const bool append = equals > first && line_[equals - 1] == '+';
    const std::string_view name = trim(line_.substr(first, equals - first - (append ? 1 : 0)));
    if (out_.sections.empty()) fail(first, fmt::format("key '{}' stands before the first section", name));
    PackEntry entry = parse_key(name, first);
    const std::string address = "[" + entry.section.title() + "] " + entry.full_key();
    const auto known = entry_of_.find(address);
    if (!append && known != entry_of_.end()) {
      fail(first, fmt::format("key '{}' was given on line {} already; use += to append", name,
                              out_.entries[known->second].place.line));
    }
    if (append && known == entry_of_.end()) {
      fail(first, fmt::format("'{} +=' has no '{} =' above it in [{}]", name, name, entry.section.title()));
    }
    if (!append) {
      entry_of_[address] = out_.entries.size();
      out_.entries.push_back(std::move(entry));
    }
    parse_value(equals + 1, out_.entries[entry_of_[address]]);
  }

  PackEntry parse_key(std::string_view name, std::size_t first) const {
    PackEntry entry;
    entry.section = out_.sections.back();
    entry.place = place(first);
    const auto dot = name.find('.');
    entry.key = std::string(name.substr(0, dot));
    if (dot != std::string_view::npos) entry.suffix = std::string(name.substr(dot));
    if (!is_pack_word(entry.key)) fail(first, fmt::format("'{}' is no key; keys are lower-case words", name));
    const bool known =
        std::find(std::begin(kPackSuffixes), std::end(kPackSuffixes), entry.suffix) != std::end(kPackSuffixes);
    if (!entry.suffix.empty() && !known) {
      fail(first + dot, fmt::format("unknown suffix '{}'; known: .one, .many, .inv", entry.suffix));
    }
    return entry;
  }

  void parse_value(std::size_t from, PackEntry& entry) const {
    std::size_t at = line_.find_first_not_of(kPackBlanks, from);
    if (at == std::string_view::npos) return;
    const std::size_t end = line_.find_last_not_of(kPackBlanks) + 1;
    while (at < end) {
      if (line_[at] == '\\') {
        at = parse_escape(at, end, entry);
      } else if (line_[at] == '{') {
        at = parse_slot(at, end, entry);
      } else if (line_[at] == '}') {
        fail(at, "'}' without '{'; a literal brace is written \\}");
      } else {
        entry.value += line_[at++];
      }
    }
  }

  std::size_t parse_escape(std::size_t at, std::size_t end, PackEntry& entry) const {
    constexpr std::string_view kLetters = "nts\\{}";
    constexpr std::string_view kMeanings = "\n\t \\{}";
    const auto letter = at + 1 < end ? kLetters.find(line_[at + 1]) : std::string_view::npos;
    if (letter == std::string_view::npos) {
      fail(at, fmt::format("unknown escape '{}'; known: \\n \\t \\s \\\\ \\{{ \\}}",
                           line_.substr(at, at + 1 < end ? 2 : 1)));
    }
    entry.value += kMeanings[letter];
    if (kMeanings[letter] == '}') check_no_false_slot(at, entry);
    return at + 2;
  }

  // Texts are kept with their slots, so a literal "{word}" would be taken for one when the text is filled in.
  void check_no_false_slot(std::size_t at, const PackEntry& entry) const {
    const auto open = entry.value.rfind('{');
    if (open == std::string::npos) return;
    const std::string_view word = std::string_view(entry.value).substr(open + 1, entry.value.size() - open - 2);
    if (is_pack_word(word)) {
      fail(at, fmt::format(
                   "the literal text '{{{}}}' cannot be told from a slot; put a blank or a capital inside the braces",
                   word));
    }
  }

  std::size_t parse_slot(std::size_t at, std::size_t end, PackEntry& entry) const {
    const std::size_t close = line_.find_first_of("{}\\", at + 1);
    if (close == std::string_view::npos || close >= end || line_[close] != '}') {
      fail(at, "'{' is not closed; a slot is written {name}, a literal brace \\{");
    }
    const std::string_view name = line_.substr(at + 1, close - at - 1);
    if (!is_pack_word(name)) fail(at, fmt::format("'{{{}}}' is no slot; slots are lower-case words", name));
    entry.slots.push_back({std::string(name), place(at)});
    entry.value += line_.substr(at, close + 1 - at);
    return close + 1;
  }

  std::string_view text_;
  const std::string& source_;
  std::string_view line_;
  std::size_t line_number_ = 0;
  PackLines out_;
  std::map<std::string, std::size_t> entry_of_;  // "[section] key" -> index in out_.entries
};

}  // namespace

void fail_pack(const std::string& source, const PackPlace& place, const std::string& message) {
  throw ConfigError(fmt::format("{}:{}:{}: {}", source, place.line, place.column, message));
}

PackLines parse_pack_lines(std::string_view text, const std::string& source) {
  return PackLineParser(text, source).parse();
}

}  // namespace fathom::text
