#pragma once
// The last step of tokenizing: one word of normalised text becomes tokens.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "harness/core/types.h"
#include "harness/text/merge_queue.h"

namespace fathom::text {

struct TokenSpan {
  TokenId id;
  std::uint32_t size_bytes;  ///< of the word's text that it stands for
};

/// Immutable; safe to use from several threads.
class TokenModel {
 public:
  virtual ~TokenModel() = default;
  /// Appends the tokens of a word; none for an empty one. \throws DataError  for a byte the vocabulary cannot express.
  virtual void encode(std::string_view word, std::vector<TokenSpan>& out) const = 0;
};

/// Tokens by their spelling in normalised text; empty spellings cannot be found.
class PieceIndex {
 public:
  explicit PieceIndex(std::vector<std::string> pieces);
  PieceIndex(const PieceIndex&) = delete;
  PieceIndex& operator=(const PieceIndex&) = delete;
  TokenId find(std::string_view piece) const {
    const auto found = ids_.find(piece);
    return found == ids_.end() ? kNoToken : found->second;
  }
  const std::vector<std::string>& pieces() const { return pieces_; }

 private:
  std::vector<std::string> pieces_;                    // by id
  std::unordered_map<std::string_view, TokenId> ids_;  // keys point into pieces_; the first of equals
};

/// What stands for text that no piece spells.
struct FallbackTokens {
  std::array<TokenId, 256> bytes{};  ///< kNoToken where there is none
  std::optional<TokenId> unknown;    ///< for a character, where its bytes have no tokens
  bool fuses_unknown = true;         ///< several unknown characters in a row are one token

  FallbackTokens() { bytes.fill(kNoToken); }
  bool has_all_bytes_of(std::string_view text) const;
  /// Appends bytes, or the unknown token. \param first  where the word's tokens begin in `out`: fusing stops there.
  /// \throws DataError  if there are neither.
  void append(std::string_view character, std::size_t first, std::vector<TokenSpan>& out) const;
};

struct TokenMerge {
  TokenId left, right, merged;
};

struct MergeVocabulary {
  std::vector<std::string> pieces;  ///< by id, as normalised text spells them
  std::vector<TokenMerge> merges;   ///< best first
  bool symbols_are_bytes = false;   ///< words begin as bytes (byte-level BPE), not characters
  bool takes_whole_words = false;   ///< a word that is a token is not merged at all
  FallbackTokens fallback;
};
/// Byte-pair encoding by ranks.
std::unique_ptr<TokenModel> make_merge_model(MergeVocabulary vocabulary);

/// How a unigram model adds scores: near ties fall as they do in the library that a file was made for.
enum class ScoreSums {
  kFloat,  ///< SentencePiece
  kDouble  ///< Hugging Face's tokenizers, llama.cpp
};

struct ScoredVocabulary {
  std::vector<std::string> pieces;  ///< by id, as normalised text spells them; empty for special and byte tokens
  std::vector<double> scores;
  ScoreSums sums = ScoreSums::kFloat;
  std::vector<bool> unused;        ///< pieces that may be merged through, but are no tokens; empty = none
  std::vector<bool> user_defined;  ///< pieces that get a score above nearly all others (unigram only); empty = none
  FallbackTokens fallback;
};
/// SentencePiece's BPE: of all neighbours whose text is a piece, the one with the best score is merged first.
std::unique_ptr<TokenModel> make_score_model(ScoredVocabulary vocabulary);
/// SentencePiece's unigram model (Kudo 2018): the way of cutting with the largest sum of scores (Viterbi).
std::unique_ptr<TokenModel> make_unigram_model(ScoredVocabulary vocabulary);

/// Cuts out pieces first (the leftmost, of those the longest) and leaves what is between them to `rest`. No piece is
/// empty.
std::unique_ptr<TokenModel> make_frozen_model(const std::vector<std::pair<std::string, TokenId>>& frozen,
                                              std::unique_ptr<TokenModel> rest);

}  // namespace fathom::text
