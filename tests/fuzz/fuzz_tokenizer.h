#pragma once
// What a tokenizer out of a hostile file is asked to do.

#include <string>

#include "harness/core/error.h"
#include "harness/text/tokenizer.h"

namespace fathom::fuzz {

inline void use_tokenizer(const text::Tokenizer& tokenizer) {
  const std::string texts[] = {"Hello, world! 12345  it's\n\n",
                               "<s> caf\xC3\xA9 e\xCC\x81 \xE6\xBC\xA2\xE5\xAD\x97 "
                               "\xF0\x9F\x98\x80 \xE2\x96\x81x",
                               std::string("\xFF\xC3 a\0b", 6), std::string(60, 'a')};
  for (const std::string& text : texts) {
    try {
      const TokenIds ids = tokenizer.encode(text);
      tokenizer.decode(ids);
      if (tokenizer.token_end_offsets(text, ids).size() != ids.size()) __builtin_trap();
    } catch (const DataError&) {  // no token for some byte
    }
  }
}

}  // namespace fathom::fuzz
