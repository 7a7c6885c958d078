#pragma once
// Finds added tokens in a text: the leftmost, of those the longest.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "harness/text/added_token.h"
#include "harness/text/prefix_index.h"
#include "harness/text/tokenizer.h"

namespace fathom::text {

/// A stretch of the text: an added token, or plain text.
struct TextSegment {
  TokenId added;  ///< kNoToken = plain text
  std::size_t begin, end;
};

class AddedTokenSearch {
 public:
  /// Of two tokens found by the same text the first counts; one without text is not looked for.
  void add(std::string text, const AddedToken& token);
  bool empty() const { return tokens_.empty(); }
  /// The segments in order. Plain ones are not empty; tokens that strip white space may overlap.
  std::vector<TextSegment> cut(std::string_view text, SpecialTokens specials) const;

 private:
  std::vector<AddedToken> tokens_;
  PrefixIndex texts_;  // places in tokens_
};

}  // namespace fathom::text
