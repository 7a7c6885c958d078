#include "harness/text/tokenizer.h"

#include "harness/core/error.h"

namespace fathom::text {

std::vector<std::size_t> Tokenizer::token_end_offsets(std::string_view text, const TokenIds& ids) const {
  std::vector<std::size_t> ends;
  ends.reserve(ids.size());
  std::size_t end = 0;
  for (const TokenId id : ids) {
    end += piece(id).size();
    ends.push_back(end);
  }
  FATHOM_CHECK(end == text.size(), "the tokens do not spell the text");
  return ends;
}

}  // namespace fathom::text
