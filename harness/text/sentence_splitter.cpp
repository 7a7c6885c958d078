#include "harness/text/sentence_splitter.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "harness/text/utf8.h"

namespace fathom::text {
namespace {

// Case counts: "no." at the end of a sentence ends it, "No. 5" does not.
constexpr std::string_view kAbbreviations[] = {"Mr", "Mrs", "Ms", "Dr", "Prof", "St", "No", "vs", "etc", "e.g", "i.e"};

constexpr std::uint32_t kEllipsis = 0x2026;

template <std::size_t n>
bool is_any_code(std::uint32_t code, const std::uint32_t (&codes)[n]) {
  return std::find(std::begin(codes), std::end(codes), code) != std::end(codes);
}

bool is_sentence_space(std::uint32_t code) {
  return code == ' ' || (code >= '\t' && code <= '\r') || code == 0xA0 || code == 0x3000;
}

bool is_western_stop(std::uint32_t code) {
  return code == '.' || code == '!' || code == '?' || code == kEllipsis;
}

bool is_cjk_stop(std::uint32_t code) {
  constexpr std::uint32_t kStops[] = {0x3002, 0xFF01, 0xFF1F};  // 。！？
  return is_any_code(code, kStops);
}

bool closes_western(std::uint32_t code) {
  constexpr std::uint32_t kClosers[] = {'"', '\'', ')', ']', '}', 0x201D, 0x2019, 0xBB, 0x203A};  // ” ’ » ›
  return is_any_code(code, kClosers);
}

bool closes_cjk(std::uint32_t code) {
  constexpr std::uint32_t kClosers[] = {0x300D, 0x300F, 0x201D, 0xFF09};  // 」』”）
  return is_any_code(code, kClosers);
}

bool opens_quote(std::uint32_t code) {
  constexpr std::uint32_t kOpeners[] = {'"', '\'', 0x201C, 0x2018, 0xAB, 0x201E, 0x2039};  // “ ‘ « „ ‹
  return is_any_code(code, kOpeners);
}

// Latin, Greek and Cyrillic capitals.
bool is_capital(std::uint32_t code) {
  if (code < 0x80) return code >= 'A' && code <= 'Z';
  if (code <= 0xFF) return code >= 0xC0 && code <= 0xDE && code != 0xD7;
  if (code <= 0x17F) {
    // Pairs begin with the capital at even codes, except in two stretches where it is at odd ones.
    const bool odd_stretch = (code >= 0x139 && code <= 0x148) || code >= 0x179;
    const bool no_pair = code == 0x138 || code == 0x149 || code == 0x17F;
    if (code == 0x178) return true;
    return !no_pair && (code % 2 == 1) == odd_stretch;
  }
  if (code >= 0x386 && code <= 0x3AB) return code != 0x387 && code != 0x390;
  if (code >= 0x400 && code <= 0x42F) return true;
  return code >= 0x460 && code <= 0x52F && code % 2 == 0;
}

bool is_letter_or_digit(std::uint32_t code) {
  if (code >= 0x80)
    return !is_sentence_space(code) && (code < 0x2000 || code >= 0x3040) && code != 0xAB && code != 0xBB;
  return (code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') || (code >= 'a' && code <= 'z');
}

class SentenceSplitter {
 public:
  explicit SentenceSplitter(std::string_view text) : text_(text) {}

  std::vector<SentenceSpan> split() {
    while (at_ < text_.size()) {
      const Utf8Char c = decode_utf8(text_, at_);
      if (c.code == '\n') {
        close(at_);
        at_ += 1;
      } else if (is_cjk_stop(c.code)) {
        skip_while([](std::uint32_t code) { return is_cjk_stop(code); });
        skip_while(closes_cjk);
        close(at_);
      } else if (is_western_stop(c.code)) {
        step_over_western_stop();
      } else {
        step(c);
      }
    }
    close(text_.size());
    return std::move(spans_);
  }

 private:
  // `begin_` is set by the first character that is not white space, `last_` follows the last one.
  void step(const Utf8Char& c) {
    if (!is_sentence_space(c.code)) {
      if (!open_) begin_ = at_;
      open_ = true;
      last_ = at_ + c.size_bytes;
    }
    at_ += c.size_bytes;
  }

  template <typename Test>
  void skip_while(Test test) {
    while (at_ < text_.size()) {
      const Utf8Char c = decode_utf8(text_, at_);
      if (!c.valid || !test(c.code)) return;
      step(c);
    }
  }

  void close(std::size_t end) {
    if (open_) spans_.push_back({begin_, std::min(last_, end)});
    open_ = false;
  }

  void step_over_western_stop() {
    const std::size_t stop = at_;
    skip_while(is_western_stop);
    const bool lone_dot = at_ == stop + 1 && text_[stop] == '.';
    skip_while(closes_western);
    if (!sentence_may_begin(at_)) return;
    if (lone_dot && is_abbreviation(stop)) return;
    close(at_);
  }

  // White space and then a capital, a digit or an opening quote; or the end of line or text.
  bool sentence_may_begin(std::size_t at) const {
    if (at == text_.size() || text_[at] == '\n') return true;
    bool space = false;
    while (at < text_.size()) {
      const Utf8Char c = decode_utf8(text_, at);
      if (c.code == '\n') return true;
      if (!is_sentence_space(c.code)) {
        return space && (is_capital(c.code) || (c.code >= '0' && c.code <= '9') || opens_quote(c.code));
      }
      space = true;
      at += c.size_bytes;
    }
    return true;
  }

  bool is_abbreviation(std::size_t dot) const {
    const std::string_view before = text_.substr(begin_, dot - begin_);
    for (const std::string_view abbreviation : kAbbreviations) {
      if (before.size() >= abbreviation.size() && before.substr(before.size() - abbreviation.size()) == abbreviation &&
          !is_word_before(before.size() - abbreviation.size())) {
        return true;
      }
    }
    const std::size_t letter = character_before(dot);
    return letter >= begin_ && letter < dot && is_capital(decode_utf8(text_, letter).code) &&
           !is_word_before(letter - begin_);
  }

  // Begin of the character in front of `at`.
  std::size_t character_before(std::size_t at) const {
    std::size_t begin = at;
    while (begin > begin_) {
      --begin;
      if ((static_cast<unsigned char>(text_[begin]) & 0xC0U) != 0x80U) break;
    }
    return begin;
  }

  // True if a letter or digit stands right in front of this offset of the open sentence.
  bool is_word_before(std::size_t offset) const {
    if (offset == 0) return false;
    return is_letter_or_digit(decode_utf8(text_, character_before(begin_ + offset)).code);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool open_ = false;
  std::size_t begin_ = 0;
  std::size_t last_ = 0;
  std::vector<SentenceSpan> spans_;
};

}  // namespace

std::vector<SentenceSpan> split_sentences(std::string_view text) {
  return SentenceSplitter(text).split();
}

}  // namespace fathom::text
