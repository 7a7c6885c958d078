#pragma once
// Closed vocabulary of the models trained here: every blank-separated word is one token (tasks specification 0.8).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "harness/text/tokenizer.h"

namespace fathom::text {

/// Sizes of the word pools. Words are a letter and a number from 0: k0, k1 … v0 … f0 … e0 …; the last three pools are
/// empty unless a task needs them: cues c0 …, targets t0 …, digits 0 … 9.
struct VocabularySpec {
  std::int64_t n_keys = 200;
  std::int64_t n_values = 200;
  std::int64_t n_fillers = 200;
  std::int64_t n_names = 100;
  std::int64_t n_cues = 0;
  std::int64_t n_targets = 0;
  std::int64_t n_digits = 0;
};

/// Order of ids: <pad> <bos> <eos>, the stop word ".", the markers in the order of the specification, then the pools k,
/// v, f, e, c, t, d (digits).
class WordTokenizer : public Tokenizer {
 public:
  /// \param add_bos  whether sequences start with <bos> (recipe B).
  /// \throws ConfigError  for a pool of fewer than 0 or more than 1,000,000 words (digits: 10).
  WordTokenizer(const VocabularySpec& spec, bool add_bos);

  /// True if a tokenizer.json is of this kind; looks at its beginning only.
  static bool is_word_json(std::string_view json);
  /// Reads back what to_json() wrote. \throws DataError on anything else.
  static std::unique_ptr<WordTokenizer> from_json(std::string_view json, const std::string& where);
  /// The model folder's `tokenizer.json` (type "fathom_words").
  std::string to_json() const;

  /// Words are separated by blanks, tabs and line ends. \throws DataError  naming a word outside the vocabulary.
  TokenIds encode(std::string_view text, SpecialTokens specials = SpecialTokens::kParse) const override;
  /// Words joined by one blank.
  std::string decode(const TokenIds& ids) const override;
  /// The word, without a blank. \throws InvariantError  for an id outside the vocabulary.
  std::string piece(TokenId id) const override;
  std::vector<std::size_t> token_end_offsets(std::string_view text, const TokenIds& ids) const override;
  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(words_.size()); }
  std::optional<TokenId> bos() const override { return kBos; }
  std::optional<TokenId> eos() const override { return kEos; }
  bool adds_bos() const override { return add_bos_; }
  bool closed_vocabulary() const override { return true; }
  std::string fingerprint() const override;

  const VocabularySpec& spec() const { return spec_; }
  TokenId pad() const { return kPad; }
  /// Id of a word. \throws DataError if it is not in the vocabulary.
  TokenId id(std::string_view word) const;
  bool contains(std::string_view word) const { return ids_.find(std::string(word)) != ids_.end(); }
  /// First id of a pool ('k', 'v', 'f', 'e', 'c', 't', 'd') and its size; ids of a pool are consecutive.
  TokenId pool_begin(char pool) const;
  std::int64_t pool_size(char pool) const;

  static constexpr TokenId kPad = 0;
  static constexpr TokenId kBos = 1;
  static constexpr TokenId kEos = 2;

 private:
  VocabularySpec spec_;
  bool add_bos_;
  std::vector<std::string> words_;
  std::unordered_map<std::string, TokenId> ids_;
};

}  // namespace fathom::text
