#pragma once
// Tokens that are looked for in the text itself, before anything else cuts it.

#include <string>

#include "harness/core/types.h"

namespace fathom::text {

struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool special = false;      ///< left as plain text with SpecialTokens::kPlainText
  bool strips_left = false;  ///< takes the white space in front of it
  bool strips_right = false;
  bool single_word = false;  ///< only where no letter, mark, digit or "_" stands beside it
  bool normalized = false;   ///< looked for in normalised text, in its own normalised form
};

}  // namespace fathom::text
