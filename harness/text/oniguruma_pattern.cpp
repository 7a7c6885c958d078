#include "harness/text/oniguruma_pattern.h"

#include <fmt/format.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/text/character_set.h"
#include "harness/text/utf8.h"

namespace fathom::text {
namespace {

// Spelled out, for both libraries' shorthands differ: PCRE2's \s has U+180E, which is no White_Space since Unicode 6.3,
// and its \w and \h are other sets altogether.
constexpr const char* kSpaceItems =
    R"(\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
constexpr const char* kNoSpaceItems =
    R"(\x{0}-\x{8}\x{E}-\x{1F}\x{21}-\x{84}\x{86}-\x{9F}\x{A1}-\x{167F}\x{1681}-\x{1FFF}\x{200B}-\x{2027}\x{202A}-\x{202E}\x{2030}-\x{205E}\x{2060}-\x{2FFF}\x{3001}-\x{10FFFF})";
constexpr const char* kWordItems =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189})";
// Outside classes Oniguruma asks another table about Latin-1, in which superscripts and fractions belong to words.
constexpr const char* kLatinWordItems = R"(\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})";
constexpr const char* kHexDigitItems = "0-9A-Fa-f";

bool is_ascii_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_ascii_digit(char c) {
  return c >= '0' && c <= '9';
}

class OnigurumaTranslator {
 public:
  OnigurumaTranslator(std::string_view pattern, const std::string& where) : in_(pattern), where_(where) {}

  std::string run() {
    while (at_ < in_.size()) step();
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw DataError(
        fmt::format("{}: pre-tokenizer pattern '{}': {} at byte {} is not supported", where_, in_, what, at_));
  }

  bool next_is(std::string_view text, std::size_t from = 0) const {
    return in_.size() >= at_ + from && in_.substr(at_ + from, text.size()) == text;
  }
  char peek(std::size_t from = 0) const { return at_ + from < in_.size() ? in_[at_ + from] : '\0'; }
  std::string_view character() const { return in_.substr(at_, decode_utf8(in_, at_).size_bytes); }

  void step() {
    const char c = in_[at_];
    if (c == '(') {
      open_group();
    } else if (c == ')') {
      ++at_;
      out_ += ')';
      if (groups_.empty()) return;
      atom_ = groups_.back().begin;
      caseless_ = groups_.back().caseless_outside;
      groups_.pop_back();
      quantify();
    } else if (c == '|') {
      ++at_;
      out_ += '|';
    } else if (c == '[') {
      begin_atom();
      const CharSet set = read_class();
      end_atom(set.text());
    } else if (c == '\\') {
      begin_atom();
      end_atom(escape());
    } else if (c == '*' || c == '+' || c == '?') {
      out_ += c;  // with nothing in front of it
      ++at_;
    } else if (c == '{') {
      begin_atom();
      ++at_;
      end_atom("\\{");
    } else {
      begin_atom();
      check_fold_of_next();
      const std::string text(character());
      at_ += text.size();
      end_atom(text);
    }
  }

  void begin_atom() { atom_ = out_.size(); }
  void end_atom(const std::string& text) {
    out_ += text;
    quantify();
  }

  void wrap_atom() {
    out_.insert(atom_, "(?:");
    out_ += ')';
  }

  struct Interval {
    std::size_t size_bytes;
    std::string text;
    bool fixed;
  };

  std::optional<Interval> interval() const {
    std::size_t i = 1;
    const auto number = [&] {
      std::string digits;
      for (; is_ascii_digit(peek(i)); ++i) digits += peek(i);
      return digits;
    };
    const std::string low = number();
    const bool fixed = peek(i) != ',';
    if (!fixed) ++i;
    const std::string high = fixed ? "" : number();
    if (peek(i) != '}' || (low.empty() && high.empty())) return std::nullopt;
    if (low.size() > 5 || high.size() > 5 || (!low.empty() && !high.empty() && std::stoi(low) > std::stoi(high))) {
      refuse("an interval of that kind");
    }
    return Interval{i + 1, fmt::format(fixed ? "{{{0}}}" : "{{{0},{1}}}", low.empty() ? "0" : low, high), fixed};
  }

  /// Everything that repeats the last atom; of several in a row each repeats what the one before it makes.
  void quantify() {
    for (bool first = true;; first = false) {
      const char c = peek();
      const bool is_sign = c == '*' || c == '+' || c == '?';
      std::optional<Interval> counts;
      if (c == '{') counts = interval();
      if (!is_sign && !counts) return;
      if (!first) wrap_atom();
      if (is_sign) {
        out_ += c;
        ++at_;
        if (peek() == '?' || peek() == '+') out_ += in_[at_++];
        continue;
      }
      out_ += counts->text;
      at_ += counts->size_bytes;
      // "{n,m}+" repeats an interval, it does not make it possessive; "{n}?" makes it optional, not reluctant.
      if (peek() == '?' && !counts->fixed) out_ += in_[at_++];
    }
  }

  void open_group() {
    if (next_is("(*")) refuse("'(*'");
    if (next_is("(?#")) {
      const std::size_t end = in_.find(')', at_);
      if (end == std::string_view::npos) refuse("a comment without an end");
      at_ = end + 1;
      return;
    }
    if (!next_is("(?")) return push_group("(", 1);
    for (const std::string_view opening : {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!"}) {
      if (next_is(opening)) return push_group(std::string(opening), opening.size());
    }
    if (next_is("(?<")) {  // nothing refers to it
      const std::size_t end = in_.find('>', at_);
      if (end == std::string_view::npos) refuse("a name without an end");
      return push_group("(?:", end + 1 - at_);
    }
    open_option_group();
  }

  void push_group(const std::string& opening, std::size_t size_bytes) {
    groups_.push_back({out_.size(), caseless_});
    out_ += opening;
    at_ += size_bytes;
  }

  void open_option_group() {
    std::string flags;
    std::size_t i = 2;
    for (; peek(i) == 'i' || peek(i) == 'm' || peek(i) == '-'; ++i) flags += peek(i) == 'm' ? 's' : peek(i);
    if (flags.empty() || (peek(i) != ':' && peek(i) != ')')) refuse(fmt::format("'{}'", in_.substr(at_, 4)));
    const bool caseless = sets_caseless(flags);
    if (peek(i) == ':') {
      push_group("(?" + flags + ":", i + 1);
      caseless_ = caseless;
      return;
    }
    // Elsewhere it would take the alternatives behind it into a group of its own.
    const bool begins = out_.empty() || (!groups_.empty() && group_is_empty());
    if (!begins) refuse(fmt::format("'(?{})' inside a pattern", flags));
    out_ += "(?" + flags + ")";
    at_ += i + 1;
    caseless_ = caseless;
  }

  bool sets_caseless(const std::string& flags) const {
    const std::size_t off = std::min(flags.find('-'), flags.size());
    const std::size_t i = flags.find('i');
    return i == std::string::npos ? caseless_ : i < off;
  }

  /// Without case Oniguruma also takes one character for the two or three that Unicode folds it to (U+00DF for "ss");
  /// PCRE2 never does.
  void check_fold(std::uint32_t code) const {
    if (!caseless_ || code < 0x80) return;
    if (icu::UnicodeString(static_cast<UChar32>(code)).foldCase().countChar32() != 1) {
      refuse(fmt::format("U+{:04X} without case", code));
    }
  }
  void check_fold_of_next() const {
    if (!caseless_) return;
    check_fold(decode_utf8(in_, at_).code);
    const std::string two{static_cast<char>(peek() | 0x20), static_cast<char>(peek(1) | 0x20)};
    for (const char* folded : {"ss", "ff", "fi", "fl", "st"}) {
      if (two == folded) refuse(fmt::format("'{}' without case", two));
    }
  }

  bool group_is_empty() const {
    const std::string_view opened = std::string_view(out_).substr(groups_.back().begin);
    return opened == "(" || opened == "(?:";
  }

  /// An escape outside classes.
  std::string escape() {
    const char c = peek(1);
    switch (c) {
      case 'A':
      case 'z':
      case 'Z':
      case 'K':
        at_ += 2;
        return {'\\', c};
      case 'b':
      case 'B':
        at_ += 2;
        return fmt::format(
            c == 'b' ? "(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))" : "(?:(?<=[{0}])(?=[{0}])|(?<![{0}])(?![{0}]))",
            std::string(kWordItems) + kLatinWordItems);
      case 'w':
      case 'W':
        at_ += 2;
        return fmt::format("[{}{}{}]", c == 'w' ? "" : "^", kWordItems, kLatinWordItems);
      default:
        break;
    }
    if (const auto set = escaped_set()) {
      const bool one_property = !set->negated && std::count(set->items.begin(), set->items.end(), '\\') == 1 &&
                                (starts_with(set->items, "\\p") || starts_with(set->items, "\\P"));
      return one_property ? set->items : set->text();
    }
    return escaped_character();
  }

  /// \s, \p{L} and their like; nothing if the escape stands for a character.
  std::optional<CharSet> escaped_set() {
    switch (peek(1)) {
      case 's':
        at_ += 2;
        return listed(kSpaceItems);
      case 'S':
        at_ += 2;
        return listed(kNoSpaceItems);
      case 'd':
        at_ += 2;
        return category_set("Nd");
      case 'D':
        at_ += 2;
        return excluded(category_set("Nd"));
      case 'w':
        at_ += 2;
        return listed(kWordItems);
      case 'W':
        at_ += 2;
        return complement(listed(kWordItems));
      case 'h':
        at_ += 2;
        return listed(kHexDigitItems);
      case 'H':
        at_ += 2;
        return complement(listed(kHexDigitItems));
      case 'p':
      case 'P':
        return property();
      default:
        return std::nullopt;
    }
  }

  /// The complement of one property, spelled so that other items may stand beside it.
  static CharSet excluded(const CharSet& property) { return listed("\\P" + property.items.substr(2)); }

  CharSet property() {
    const std::size_t end = in_.find('}', at_);
    if (peek(2) != '{' || end == std::string_view::npos) refuse("'\\p' without a name in braces");
    std::string_view name = in_.substr(at_ + 3, end - at_ - 3);
    bool negated = peek(1) == 'P';
    if (!name.empty() && name.front() == '^') {
      negated = !negated;
      name.remove_prefix(1);
    }
    auto set = property_set(name);
    if (!set) refuse(fmt::format("property '{}'", name));
    const bool cased = set->items == R"(\p{Lu})" || set->items == R"(\p{Ll})" || set->items == R"(\p{Lt})";
    if (caseless_ && cased) refuse(fmt::format("property '{}' without case", name));
    at_ = end + 1;
    return negated ? excluded(*set) : *set;
  }

  /// The text for one escaped character, and moves behind it.
  std::string escaped_character() {
    const std::uint32_t code = escaped_code();
    check_fold(code);
    if (code >= 0x80) return fmt::format("\\x{{{:X}}}", code);
    const char c = static_cast<char>(code);
    if (c < ' ' || is_ascii_letter(c) || is_ascii_digit(c) || c == 0x7F) return fmt::format("\\x{{{:X}}}", code);
    return {'\\', c};
  }

  std::uint32_t escaped_code() {
    const char c = peek(1);
    static const std::map<char, std::uint32_t> kControls{{'t', 9},  {'n', 10}, {'v', 11}, {'f', 12},
                                                         {'r', 13}, {'a', 7},  {'e', 27}};
    const auto control = kControls.find(c);
    if (control != kControls.end()) {
      at_ += 2;
      return control->second;
    }
    if (next_is("\\x{")) {
      const std::size_t end = in_.find('}', at_);
      return hex_code(3, end == std::string_view::npos ? 0 : end - at_ - 3, 1);
    }
    if (c == 'x') {
      const std::uint32_t code = hex_code(2, 2, 0);
      if (code >= 0x80) refuse("a byte of a longer character");
      return code;
    }
    if (c == 'u') return hex_code(2, 4, 0);
    if (is_ascii_letter(c) || is_ascii_digit(c) || at_ + 1 >= in_.size()) refuse(fmt::format("'\\{}'", c));
    ++at_;
    return take_code();
  }

  std::uint32_t hex_code(std::size_t from, std::size_t n_digits, std::size_t behind) {
    std::uint32_t code = 0;
    if (n_digits < 1 || n_digits > 8) refuse("an escape of that length");
    for (std::size_t i = 0; i < n_digits; ++i) {
      const auto digit = std::string_view("0123456789abcdef").find(static_cast<char>(peek(from + i) | 0x20));
      if (digit == std::string_view::npos || peek(from + i) < '0') refuse("an escape without its digits");
      code = (code << 4U) | static_cast<std::uint32_t>(digit);
    }
    if (code > 0x10FFFF) refuse("a code above U+10FFFF");
    at_ += from + n_digits + behind;
    return code;
  }

  std::uint32_t take_code() {
    const Utf8Char c = decode_utf8(in_, at_);
    at_ += c.size_bytes;
    return c.code;
  }

  /// A class from its "[" to its "]".
  CharSet read_class() {
    ++at_;
    const bool negated = peek() == '^';
    if (negated) ++at_;
    if (++depth_ > 16) refuse("a class nested that deep");
    if (negated && caseless_) refuse("an excluding class without case");
    if (negated && excludes_) refuse("an excluding class inside another");  // Oniguruma's own answer varies
    const bool excluded_outside = excludes_;
    excludes_ = excludes_ || negated;
    std::vector<CharSet> operands;
    std::vector<CharSet> parts;
    const auto end_operand = [&] {
      if (parts.empty()) refuse("an empty class");
      operands.push_back(union_of(parts));
      parts.clear();
    };
    for (bool first = true;; first = false) {
      if (at_ >= in_.size()) refuse("a class without an end");
      if (peek() == ']' && !first) break;
      if (next_is("&&")) {
        end_operand();
        at_ += 2;
      } else if (next_is("[:") && in_.find(":]", at_) != std::string_view::npos) {
        refuse("a POSIX bracket");
      } else if (peek() == '[') {
        parts.push_back(read_class());
      } else {
        parts.push_back(class_item());
      }
    }
    end_operand();
    ++at_;
    --depth_;
    excludes_ = excluded_outside;
    CharSet set = intersection_of(operands);
    return negated ? complement(std::move(set)) : set;
  }

  /// One character, a range, or a shorthand.
  CharSet class_item() {
    if (peek() == '\\') {
      if (auto set = escaped_set()) {
        if (caseless_) refuse("a set in a class without case");
        if (peek() == '-' && peek(1) != ']') refuse("a range that begins with a set");
        return *std::move(set);
      }
    }
    if (next_is("--")) refuse("'--' in a class");
    const std::uint32_t low = class_code();
    const bool is_range = peek() == '-' && peek(1) != ']' && peek(1) != '\0' && !next_is("&&", 1);
    check_fold(low);
    if (!is_range) return listed(code_item(low));
    ++at_;
    if (peek() == '[') refuse("a range that ends with a class");
    const std::uint32_t high = class_code();
    if (peek() == '-' && peek(1) == '-') refuse("'--' in a class");
    for (std::uint32_t code = low; caseless_ && code <= high; ++code) check_fold(code);
    std::string items = code_item(low) + "-" + code_item(high);
    if (peek() == '-' && peek(1) != ']') {  // "a-c-e": the second line is one
      ++at_;
      items += "\\-";
    }
    return listed(items);
  }

  std::uint32_t class_code() {
    if (peek() != '\\') return take_code();
    if (peek(1) == 'b') {  // a backspace here
      at_ += 2;
      return 8;
    }
    return escaped_code();
  }

  static std::string code_item(std::uint32_t code) { return fmt::format("\\x{{{:X}}}", code); }

  std::string_view in_;
  const std::string& where_;
  std::size_t at_ = 0;
  std::string out_;
  std::size_t atom_ = 0;  // where the last atom begins in out_
  struct Group {
    std::size_t begin;
    bool caseless_outside;
  };
  std::vector<Group> groups_;  // that are open; `begin` as atom_
  bool caseless_ = false;
  bool excludes_ = false;  // inside a class that excludes
  int depth_ = 0;
};

}  // namespace

std::string pcre2_of_oniguruma(std::string_view pattern, const std::string& where) {
  return OnigurumaTranslator(pattern, where).run();
}

}  // namespace fathom::text
