#pragma once
// Byte-level BPE, as GPT-2, Llama 3, Qwen and SmolLM use it.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/text/tokenizer.h"

namespace fathom::text {

/// What a GGUF file's tokenizer.ggml.* keys say.
struct BpeVocabulary {
  std::vector<std::string> pieces;  ///< by id; ordinary ones spelled in GPT-2's visible characters, one a byte
  std::vector<std::string> merges;  ///< "LEFT RIGHT", best first
  std::vector<std::int32_t>
      token_types;  ///< 1 ordinary, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte; empty = all ordinary
  std::string pretokenizer;  ///< see Pretokenizer::names()
  std::optional<TokenId> bos, eos;
  bool add_bos = false;
};

/// Encoding cuts out control and user-defined tokens first (unless asked not to), splits the rest into words, and
/// merges the bytes of each word, best-ranked pair first, leftmost of equals. Bytes that are not UTF-8 are kept.
///
/// \param where  names the file in messages.
/// \throws DataError `WHERE: …`  for an unknown pre-tokenizer, lists of different lengths, an id outside the
/// vocabulary, a merge of pieces
///   that are none. encode() throws DataError for a byte the vocabulary has no token for.
std::unique_ptr<Tokenizer> make_bpe_tokenizer(const BpeVocabulary& vocabulary, const std::string& where);

}  // namespace fathom::text
