#pragma once
// SentencePiece tokenizers: BPE and unigram, with byte fallback.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/text/normalizer.h"
#include "harness/text/tokenizer.h"

namespace fathom::text {

/// What a tokenizer.model, or a GGUF file's tokenizer.ggml.* keys, say.
struct SentencePieceVocabulary {
  enum class Kind { kBpe, kUnigram };
  Kind kind = Kind::kBpe;
  std::vector<std::string> pieces;  ///< by id; "▁" for a blank
  std::vector<float> scores;
  std::vector<std::int32_t> types;          ///< 1 ordinary, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte
  std::string charsmap;                     ///< table of replacements; empty = none
  bool collapses_blanks = false;            ///< remove_extra_whitespaces
  std::optional<PrefixPlace> blank_prefix;  ///< add_dummy_prefix
  /// User-defined pieces are found in normalised text (the library), not cut out of the text first (llama.cpp). Goes
  /// with the library's way to normalise and to add scores.
  bool finds_user_pieces_late = false;
  std::optional<TokenId> unknown, bos, eos;
  bool add_bos = false;
  bool add_eos = false;
};

/// \param where  names the file in messages.
/// \throws DataError `WHERE: …`  for lists of different lengths, a score that is no number, an unknown type, a byte
/// token not spelled '<0xNN>'.
std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(const SentencePieceVocabulary& vocabulary,
                                                        const std::string& where);

/// Reads the bytes of a tokenizer.model (protocol buffer `ModelProto`); nothing is believed before it is checked.
/// BOS and EOS are named, not added: the file does not say that.
/// \throws DataError `WHERE: …`  for anything damaged, and for model types other than BPE and unigram.
SentencePieceVocabulary read_sentencepiece_model(std::string_view bytes, const std::string& where);

}  // namespace fathom::text
