#pragma once
// Text to token ids and back. Implementations are immutable after construction and safe to use from several threads.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/types.h"

namespace fathom::text {

/// Whether the texts of special tokens ("<|im_start|>") inside the input become those tokens or stay plain text.
enum class SpecialTokens { kParse, kPlainText };

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Never adds BOS or EOS.
  /// \throws DataError  if the text holds something the tokenizer cannot express (a word outside a closed vocabulary).
  virtual TokenIds encode(std::string_view text, SpecialTokens specials = SpecialTokens::kParse) const = 0;
  /// Special tokens appear as their text. Bytes that are not UTF-8 stay as they are.
  virtual std::string decode(const TokenIds& ids) const = 0;
  /// The bytes this one token stands for inside a text.
  virtual std::string piece(TokenId id) const = 0;
  /// For each token of `ids` the byte offset in `text` just behind it; never falls.
  /// \param ids  encode(text), without a BOS in front.
  /// \throws InvariantError  if `ids` do not spell `text`.
  virtual std::vector<std::size_t> token_end_offsets(std::string_view text, const TokenIds& ids) const;

  virtual std::int64_t vocab_size() const = 0;
  virtual std::optional<TokenId> bos() const = 0;
  virtual std::optional<TokenId> eos() const = 0;
  /// True if the model expects BOS in front of every sequence.
  virtual bool adds_bos() const = 0;
  /// True if the file wants EOS behind every sequence (an encoder's input); decoders' prompts go without it.
  virtual bool adds_eos() const { return false; }
  /// True for word-level vocabularies: every blank-separated word is one token, nothing else can be expressed.
  virtual bool closed_vocabulary() const { return false; }
  /// Stable hex hash of everything that shapes encode().
  virtual std::string fingerprint() const = 0;
};

}  // namespace fathom::text
