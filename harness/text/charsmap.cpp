// SentencePiece's precompiled_charsmap: [u32 bytes of the trie][trie, u32 units][texts, each ended by a zero byte].

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <memory>

#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/text/normalizer.h"
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
    CharsMatch best;
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
      if (value < texts_.size()) best = {i + 1, texts_.substr(value, texts_.find('\0', value) - value)};
    }
    return best;
  }

 private:
  static std::size_t offset(std::uint32_t unit) { return (unit >> 10U) << ((unit & 0x200U) >> 6U); }

  std::string table_;
  std::vector<std::uint32_t> units_;
  std::string_view texts_;
};

}  // namespace

NormalizerStep normalize::charsmap(std::string table, const std::string& where) {
  const auto map = std::make_shared<const CharsMap>(std::move(table), where);
  return {"charsmap " + hash_hex(map->table()), [map](NormalizedText& text, const SegmentPlace&) {
            TextRewriter writer(text);
            while (!writer.done()) {
              const CharsMatch match = map->longest_match(writer.rest());
              if (match.size_bytes > 0) {
                writer.replace(match.size_bytes, match.text);
                continue;
              }
              const Utf8Char c = decode_utf8(writer.rest(), 0);
              if (c.valid) {
                writer.copy(c.size_bytes);
              } else {
                writer.replace(1, "\xEF\xBF\xBD");  // as SentencePiece writes a byte that is no UTF-8
              }
            }
            text = writer.take();
          }};
}

}  // namespace fathom::text
