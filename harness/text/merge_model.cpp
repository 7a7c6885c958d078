// Byte-pair encoding by ranks, over bytes or characters.

#include <algorithm>
#include <utility>

#include "harness/text/token_model.h"
#include "harness/text/utf8.h"

namespace fathom::text {
namespace {

class MergeModel : public TokenModel {
 public:
  explicit MergeModel(MergeVocabulary vocabulary)
      : index_(std::move(vocabulary.pieces)),
        symbols_are_bytes_(vocabulary.symbols_are_bytes),
        takes_whole_words_(vocabulary.takes_whole_words),
        fallback_(vocabulary.fallback) {
    merges_.reserve(vocabulary.merges.size());
    for (std::size_t rank = 0; rank < vocabulary.merges.size(); ++rank) {
      const TokenMerge& merge = vocabulary.merges[rank];
      // Of a pair that stands twice the later rank counts, as in a map that is filled in order.
      merges_[key(merge.left, merge.right)] = {static_cast<double>(rank), merge.merged};
    }
  }

  void encode(std::string_view word, std::vector<TokenSpan>& out) const override {
    if (word.empty()) return;
    if (takes_whole_words_) {
      const TokenId whole = index_.find(word);
      if (whole != kNoToken) {
        out.push_back({whole, static_cast<std::uint32_t>(word.size())});
        return;
      }
    }
    std::vector<TokenSpan> start;
    start.reserve(word.size());
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t size = symbols_are_bytes_ ? 1 : decode_utf8(word, at).size_bytes;
      const TokenId id = index_.find(word.substr(at, size));
      if (id != kNoToken) {
        start.push_back({id, static_cast<std::uint32_t>(size)});
      } else {
        fallback_.append(word.substr(at, size), 0, start);
      }
      at += size;
    }
    std::vector<MergeSymbol> symbols;
    symbols.reserve(start.size());
    std::size_t begin = 0;
    for (const TokenSpan& span : start) {
      append_symbol(symbols, span.id, begin, span.size_bytes);
      begin += span.size_bytes;
    }
    merge_symbols(symbols, [this](const MergeSymbol& left, const MergeSymbol& right) -> std::optional<MergeChoice> {
      const auto found = merges_.find(key(left.token, right.token));
      return found == merges_.end() ? std::nullopt : std::optional<MergeChoice>(found->second);
    });
    for (std::size_t i = 0; i != kNoSymbol; i = symbols[i].next) {
      out.push_back({symbols[i].token, static_cast<std::uint32_t>(symbols[i].size_bytes)});
    }
  }

 private:
  static std::uint64_t key(TokenId left, TokenId right) {
    return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32U) | static_cast<std::uint32_t>(right);
  }

  PieceIndex index_;
  std::unordered_map<std::uint64_t, MergeChoice> merges_;
  bool symbols_are_bytes_;
  bool takes_whole_words_;
  FallbackTokens fallback_;
};

}  // namespace

std::unique_ptr<TokenModel> make_merge_model(MergeVocabulary vocabulary) {
  return std::make_unique<MergeModel>(std::move(vocabulary));
}

}  // namespace fathom::text
