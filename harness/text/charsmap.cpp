// SentencePiece's precompiled_charsmap: [u32 bytes of the trie][trie, u32 units][texts, each ended by a zero byte].

#include <fmt/format.h>
#include <unicode/brkiter.h>
#include <unicode/utext.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/core/text_util.h"
#include "harness/text/normalizer.h"
#include "harness/text/prefix_index.h"
#include "harness/text/utf8.h"

namespace fathom::text {
namespace {

struct CharsMatch {
  std::size_t size_bytes = 0;  ///< 0 = none
  std::string_view text;
};

/// A double array as darts-clone writes it; every step is checked, so a damaged one gives odd replacements at worst.
class CharsMap {
 public:
  CharsMap(std::string table, const std::string& where) : table_(std::move(table)) {
    std::uint32_t trie_bytes = 0;
    if (table_.size() >= sizeof(trie_bytes)) std::memcpy(&trie_bytes, table_.data(), sizeof(trie_bytes));
    if (trie_bytes < 4 || trie_bytes % 4 != 0 || trie_bytes > table_.size() - 4 || table_.back() != '\0') {
      throw DataError(
          fmt::format("{}: the normalizer's table of {} bytes claims a trie of {}", where, table_.size(), trie_bytes));
    }
    units_.resize(trie_bytes / 4);
    std::memcpy(units_.data(), table_.data() + 4, trie_bytes);
    texts_ = std::string_view(table_).substr(4 + trie_bytes);
  }
  CharsMap(const CharsMap&) = delete;
  CharsMap& operator=(const CharsMap&) = delete;

  const std::string& table() const { return table_; }

  CharsMatch longest_match(std::string_view text) const {
    CharsMatch longest;
    for_each_match(text, [&](const CharsMatch& match) {
      longest = match;
      return true;
    });
    return longest;
  }

  CharsMatch shortest_match(std::string_view text) const {
    CharsMatch shortest;
    for_each_match(text.substr(0, text.find('\0')), [&](const CharsMatch& match) {
      shortest = match;
      return false;
    });
    return shortest;
  }

 private:
  static std::size_t offset(std::uint32_t unit) { return (unit >> 10U) << ((unit & 0x200U) >> 6U); }

  /// Calls found(match), the shortest first, until it says false.
  template <typename Found>
  void for_each_match(std::string_view text, Found found) const {
    std::size_t node = offset(units_[0]);
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto byte = static_cast<std::uint32_t>(static_cast<unsigned char>(text[i]));
      node ^= byte;
      if (node >= units_.size()) break;
      const std::uint32_t unit = units_[node];
      if ((unit & 0x800000FFU) != byte) break;  // its label
      node ^= offset(unit);
      if ((unit & 0x100U) == 0) continue;  // no text ends here
      if (node >= units_.size()) break;
      const std::size_t value = units_[node] & 0x7FFFFFFFU;
      if (value >= texts_.size()) continue;
      if (!found(CharsMatch{i + 1, texts_.substr(value, texts_.find('\0', value) - value)})) return;
    }
  }

  std::string table_;
  std::vector<std::uint32_t> units_;
  std::string_view texts_;
};

constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // as SentencePiece writes a byte that is no UTF-8

/// What stands for the beginning of a text, and how much of it.
CharsMatch first_match(const CharsMap& map, std::string_view text) {
  const CharsMatch match = map.longest_match(text);
  if (match.size_bytes > 0) return match;
  const Utf8Char c = decode_utf8(text, 0);
  return {c.size_bytes, c.valid ? text.substr(0, c.size_bytes) : kReplacementCharacter};
}

void write_match(TextRewriter& writer, const CharsMatch& match) {
  if (match.text.data() == writer.rest().data()) {
    writer.copy(match.size_bytes);
  } else {
    writer.replace(match.size_bytes, match.text);
  }
}

/// One user-perceived character, which is well-formed UTF-8.
void map_grapheme(const CharsMap& map, std::size_t size_bytes, TextRewriter& writer) {
  // The library tries short ones whole, takes the shortest rule that fits, and drops what that leaves over.
  constexpr std::size_t kLongestWhole = 5;
  const std::size_t end = writer.position() + size_bytes;
  if (size_bytes <= kLongestWhole) {
    const CharsMatch match = map.shortest_match(writer.rest().substr(0, size_bytes));
    if (match.size_bytes > 0) return writer.replace(size_bytes, match.text);
  }
  while (writer.position() < end) {
    const std::size_t size = decode_utf8(writer.rest(), 0).size_bytes;
    const CharsMatch match = map.shortest_match(writer.rest().substr(0, size));
    if (match.size_bytes > 0) {
      writer.replace(size, match.text);
    } else {
      writer.copy(size);
    }
  }
}

void map_graphemes(const CharsMap& map, std::string_view run, icu::BreakIterator& graphemes, TextRewriter& writer) {
  UErrorCode status = U_ZERO_ERROR;
  UText* text = utext_openUTF8(nullptr, run.data(), static_cast<std::int64_t>(run.size()), &status);
  graphemes.setText(text, status);  // takes a shallow copy
  utext_close(text);
  FATHOM_CHECK(U_SUCCESS(status), fmt::format("ICU cannot cut a text into characters: {}", u_errorName(status)));
  std::int32_t begin = 0;
  for (std::int32_t end = graphemes.next(); end != icu::BreakIterator::DONE; end = graphemes.next()) {
    map_grapheme(map, static_cast<std::size_t>(end - begin), writer);
    begin = end;
  }
}

std::unique_ptr<icu::BreakIterator> grapheme_iterator() {
  UErrorCode status = U_ZERO_ERROR;
  std::unique_ptr<icu::BreakIterator> made(icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), status));
  FATHOM_CHECK(U_SUCCESS(status), fmt::format("ICU has no rules for characters: {}", u_errorName(status)));
  return made;
}

/// SentencePiece's own normaliser, in one pass as the library has it.
class SentencePieceRewriter {
 public:
  SentencePieceRewriter(normalize::SentencePieceRules rules, const std::string& where) : rules_(std::move(rules)) {
    if (!rules_.charsmap.empty()) map_ = std::make_unique<CharsMap>(rules_.charsmap, where);
    for (const std::string& piece : rules_.shielded) shielded_.add(piece, 0);
  }

  std::string canonical() const {
    std::string text = fmt::format("sentencepiece {} {} {}", hash_hex(rules_.charsmap), rules_.collapses_blanks ? 1 : 0,
                                   rules_.blank_prefix ? static_cast<int>(*rules_.blank_prefix) : -1);
    for (const std::string& piece : rules_.shielded) text += fmt::format(" {}:{}", piece.size(), piece);
    return text;
  }

  NormalizedText apply(const NormalizedText& text, const SegmentPlace& place) const {
    TextRewriter writer(text);
    while (rules_.collapses_blanks && !writer.done()) {
      const CharsMatch match = next(writer.rest());
      if (match.text != " ") break;
      writer.replace(match.size_bytes, "");
    }
    if (writer.done()) return writer.take();
    if (rules_.blank_prefix && place_holds(*rules_.blank_prefix, place)) writer.replace(0, rules_.blank_mark);
    bool after_blank = rules_.collapses_blanks;
    while (!writer.done()) {
      CharsMatch match = next(writer.rest());
      if (after_blank) match.text.remove_prefix(std::min(match.text.find_first_not_of(' '), match.text.size()));
      if (!match.text.empty()) after_blank = rules_.collapses_blanks && match.text.back() == ' ';
      if (match.text.find(' ') == std::string_view::npos) {
        write_match(writer, match);
      } else {
        writer.replace(match.size_bytes, replace_all(std::string(match.text), " ", rules_.blank_mark));
      }
    }
    NormalizedText out = writer.take();
    if (rules_.collapses_blanks) drop_marks_behind(out);
    return out;
  }

 private:
  CharsMatch next(std::string_view text) const {
    const PrefixIndex::Found shielded = shielded_.longest(text, 0);
    if (shielded.size_bytes > 0) return {shielded.size_bytes, text.substr(0, shielded.size_bytes)};
    if (map_ != nullptr) return first_match(*map_, text);
    const std::size_t size = decode_utf8(text, 0).size_bytes;
    return {size, text.substr(0, size)};
  }

  void drop_marks_behind(NormalizedText& text) const {
    const std::string& mark = rules_.blank_mark;
    while (ends_with(text.text, mark)) text.text.resize(text.text.size() - mark.size());
    if (!text.ends.empty()) text.ends.resize(text.text.size());
  }

  normalize::SentencePieceRules rules_;
  std::unique_ptr<CharsMap> map_;  ///< null = no replacements
  PrefixIndex shielded_;
};

}  // namespace

NormalizerStep normalize::charsmap(std::string table, const std::string& where) {
  const auto map = std::make_shared<const CharsMap>(std::move(table), where);
  return {"charsmap " + hash_hex(map->table()), [map](NormalizedText& text, const SegmentPlace&) {
            TextRewriter writer(text);
            while (!writer.done()) write_match(writer, first_match(*map, writer.rest()));
            text = writer.take();
          }};
}

NormalizerStep normalize::charsmap_by_graphemes(std::string table, const std::string& where) {
  const auto map = std::make_shared<const CharsMap>(std::move(table), where);
  return {"charsmap_by_graphemes " + hash_hex(map->table()), [map](NormalizedText& text, const SegmentPlace&) {
            const auto graphemes = grapheme_iterator();
            TextRewriter writer(text);
            for (const Utf8Run& run : utf8_runs(text.text)) {
              if (run.valid) {
                map_graphemes(*map, run.text, *graphemes, writer);
              } else {
                writer.replace(run.text.size(), kReplacementCharacter);
              }
            }
            text = writer.take();
          }};
}

NormalizerStep normalize::sentencepiece(SentencePieceRules rules, const std::string& where) {
  const auto rewriter = std::make_shared<const SentencePieceRewriter>(std::move(rules), where);
  return {rewriter->canonical(),
          [rewriter](NormalizedText& text, const SegmentPlace& place) { text = rewriter->apply(text, place); }};
}

}  // namespace fathom::text
