#pragma once
// A tokenizer put together from parts, as tokenizer.json and SentencePiece describe theirs: added tokens are cut out,
// the rest is normalised, cut into words, and each word becomes tokens.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/text/normalizer.h"
#include "harness/text/pretokenizer.h"
#include "harness/text/token_model.h"
#include "harness/text/tokenizer.h"

namespace fathom::text {

/// A token that is looked for in the text itself.
struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool special = false;      ///< left as plain text with SpecialTokens::kPlainText
  bool strips_left = false;  ///< takes the white space in front of it
  bool strips_right = false;
  bool single_word = false;  ///< only where no letter, digit or "_" stands beside it
};

struct PipelineParts {
  std::vector<AddedToken> added;
  Normalizer normalizer;
  Pretokenizer pretokenizer;
  std::unique_ptr<TokenModel> model;
  std::vector<std::string> texts;  ///< by id: the bytes a token stands for
  /// Where the normaliser puts a blank in front that decode() takes away again; nothing = nowhere.
  std::optional<PrefixPlace> blank_prefix;
  std::optional<TokenId> bos, eos;
  bool add_bos = false;
  bool add_eos = false;
  std::string canonical;  ///< text of everything that the parts above do not say, for the fingerprint
};

/// \param where  names the file in messages.
/// \throws DataError `WHERE: …`  for an id outside the vocabulary, and BOS to be added where none is named.
std::unique_ptr<Tokenizer> make_pipeline_tokenizer(PipelineParts parts, const std::string& where);

}  // namespace fathom::text
