// SentencePiece's BPE: merges are found by text, ordered by score.

#include <unordered_set>
#include <utility>

#include "harness/core/error.h"
#include "harness/text/token_model.h"
#include "harness/text/utf8.h"

namespace fathom::text {
namespace {

constexpr std::string_view kScoredBlankMark = "\xE2\x96\x81";  // "▁"

class ScoreModel : public TokenModel {
 public:
  explicit ScoreModel(ScoredVocabulary vocabulary)
      : index_(std::move(vocabulary.pieces)),
        scores_(std::move(vocabulary.scores)),
        unused_(std::move(vocabulary.unused)),
        fallback_(vocabulary.fallback) {
    FATHOM_CHECK(scores_.size() == index_.pieces().size(), "one score a piece");
    for (const std::string& piece : index_.pieces()) note_blanks_inside(piece);
  }

  void encode(std::string_view text, std::vector<TokenSpan>& out) const override {
    // Where no piece holds what stands before a "▁", merging cannot cross it, and words can be done, and kept, alone.
    KnownWords known;
    std::size_t begin = 0;
    char before = '\0';
    for (std::size_t at = 0; at <= text.size();) {
      const bool at_end = at == text.size();
      const bool cut = at > begin && (at_end || (text.compare(at, kScoredBlankMark.size(), kScoredBlankMark) == 0 &&
                                                 before_blank_.count(before) == 0));
      if (cut) {
        encode_word(text.substr(begin, at - begin), known, out);
        begin = at;
      }
      if (at_end) break;
      const std::size_t size = decode_utf8(text, at).size_bytes;
      before = text[at + size - 1];
      at += size;
    }
  }

 private:
  using KnownWords = std::unordered_map<std::string_view, std::pair<std::size_t, std::size_t>>;

  /// Notes the last bytes of characters that some piece has in front of a "▁".
  void note_blanks_inside(const std::string& piece) {
    for (std::size_t at = piece.find(kScoredBlankMark, 1); at != std::string::npos;
         at = piece.find(kScoredBlankMark, at + 1)) {
      before_blank_.insert(piece[at - 1]);
    }
  }

  void encode_word(std::string_view word, KnownWords& known, std::vector<TokenSpan>& out) const {
    const auto [entry, is_new] = known.try_emplace(word, 0, 0);
    if (is_new) {
      const std::size_t begin = out.size();
      merge_word(word, out);
      entry->second = {begin, out.size()};
    } else {
      const auto [begin, end] = entry->second;
      for (std::size_t i = begin; i < end; ++i) {
        const TokenSpan span = out[i];
        out.push_back(span);
      }
    }
  }

  void merge_word(std::string_view word, std::vector<TokenSpan>& out) const {
    const std::size_t first = out.size();
    std::vector<MergeSymbol> symbols;
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t size = decode_utf8(word, at).size_bytes;
      append_symbol(symbols, index_.find(word.substr(at, size)), at, size);
      at += size;
    }
    std::unordered_map<std::string_view, std::size_t> left_sizes;  // of merges into pieces that are no tokens
    merge_symbols(symbols, [&](const MergeSymbol& left, const MergeSymbol& right) -> std::optional<MergeChoice> {
      const std::string_view both = word.substr(left.begin, left.size_bytes + right.size_bytes);
      const TokenId id = index_.find(both);
      if (id == kNoToken) return std::nullopt;
      if (is_unused(id)) left_sizes.emplace(both, left.size_bytes);
      return MergeChoice{-scores_[static_cast<std::size_t>(id)], id};
    });
    for (std::size_t i = 0; i != kNoSymbol; i = symbols[i].next) {
      append_piece(word.substr(symbols[i].begin, symbols[i].size_bytes), left_sizes, first, out);
    }
  }

  bool is_unused(TokenId id) const { return !unused_.empty() && unused_[static_cast<std::size_t>(id)]; }

  /// A piece that is no token falls back into the two it was merged from.
  void append_piece(std::string_view piece, const std::unordered_map<std::string_view, std::size_t>& left_sizes,
                    std::size_t first, std::vector<TokenSpan>& out) const {
    const TokenId id = index_.find(piece);
    const auto merged = left_sizes.find(piece);
    if (id != kNoToken && is_unused(id) && merged != left_sizes.end()) {
      append_piece(piece.substr(0, merged->second), left_sizes, first, out);
      append_piece(piece.substr(merged->second), left_sizes, first, out);
    } else if (id != kNoToken) {
      out.push_back({id, static_cast<std::uint32_t>(piece.size())});
    } else {
      fallback_.append(piece, first, out);
    }
  }

  PieceIndex index_;
  std::vector<double> scores_;
  std::vector<bool> unused_;
  FallbackTokens fallback_;
  std::unordered_set<char> before_blank_;
};

}  // namespace

std::unique_ptr<TokenModel> make_score_model(ScoredVocabulary vocabulary) {
  return std::make_unique<ScoreModel>(std::move(vocabulary));
}

}  // namespace fathom::text
