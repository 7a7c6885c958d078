#pragma once
// A tokenizer put together from parts, as tokenizer.json and SentencePiece describe theirs: added tokens are cut out,
// the rest is normalised, cut into words, and each word becomes tokens.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/text/added_token.h"
#include "harness/text/normalizer.h"
#include "harness/text/pretokenizer.h"
#include "harness/text/token_model.h"
#include "harness/text/tokenizer.h"

namespace fathom::text {

struct PipelineParts {
  std::vector<AddedToken> added;
  Normalizer normalizer;
  Normalizer rewriter;  ///< what pre-tokenizers change, behind the search for tokens in normalised text
  Pretokenizer pretokenizer;
  std::unique_ptr<TokenModel> model;
  std::vector<std::string> texts;  ///< by id: the bytes a token stands for
  /// Where the normaliser puts a blank in front that decode() takes away again; nothing = nowhere.
  std::optional<PrefixPlace> blank_prefix;
  std::optional<TokenId> bos, eos;
  bool add_bos = false;
  bool add_eos = false;
  std::string canonical;  ///< text of everything that the parts above do not say, for the fingerprint
  /// Of the rules by which ids come from the parts: results stored under another version are not taken over. 1 stands
  /// for vocabularies whose ids were never found to differ from the reference's.
  int version = 2;
};

/// \param where  names the file in messages.
/// \throws DataError `WHERE: …`  for an id outside the vocabulary, and BOS to be added where none is named.
std::unique_ptr<Tokenizer> make_pipeline_tokenizer(PipelineParts parts, const std::string& where);

}  // namespace fathom::text
