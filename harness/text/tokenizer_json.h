#pragma once
// Hugging Face's tokenizer.json: BPE (byte level, or characters with byte fallback) and unigram.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/text/added_token.h"
#include "harness/text/tokenizer.h"

namespace fathom::text {

/// What the files beside tokenizer.json say about special tokens. Texts come before ids.
struct SpecialTokenPolicy {
  std::optional<std::string> bos, eos;
  std::optional<TokenId> bos_id, eos_id;
  std::optional<bool> add_bos, add_eos;
  /// Come after those of tokenizer.json, and where the texts are equal instead of them.
  std::vector<AddedToken> added;
  /// The class of tokenizer builds its frame from add_bos and add_eos, whatever the post-processor says (Llama, Gemma).
  bool flags_win = false;
};

/// \param where  names the file in messages.
/// \throws DataError `WHERE: …`  for damaged JSON, and for every part or option that is not supported: a step left out
/// would give other ids without a word.
std::unique_ptr<Tokenizer> read_tokenizer_json(std::string_view json, const SpecialTokenPolicy& policy,
                                               const std::string& where);

}  // namespace fathom::text
