#include "harness/text/added_token_search.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <utility>

#include "harness/text/token_model.h"
#include "harness/text/utf8.h"

namespace fathom::text {
namespace {

/// \w as Unicode's annex 18 has it.
bool is_word_character(const Utf8Char& c) {
  if (!c.valid) return false;
  const auto code = static_cast<UChar32>(c.code);
  constexpr std::uint32_t kMarksDigitsAndLines = U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK;
  return u_hasBinaryProperty(code, UCHAR_ALPHABETIC) != 0 || (U_GET_GC_MASK(code) & kMarksDigitsAndLines) != 0 ||
         u_hasBinaryProperty(code, UCHAR_JOIN_CONTROL) != 0;
}

bool stands_alone(std::string_view text, std::size_t begin, std::size_t end) {
  if (begin > 0 && is_word_character(last_utf8(text.substr(0, begin)))) return false;
  return end == text.size() || !is_word_character(decode_utf8(text, end));
}

}  // namespace

void AddedTokenSearch::add(std::string text, const AddedToken& token) {
  texts_.add(std::move(text), tokens_.size());
  tokens_.push_back(token);
}

std::vector<TextSegment> AddedTokenSearch::cut(std::string_view text, SpecialTokens specials) const {
  std::vector<TextSegment> segments;
  std::size_t plain = 0;  // where plain text begins that no segment holds yet
  for (std::size_t at = 0; at < text.size();) {
    const PrefixIndex::Found found = texts_.longest(
        text, at, [&](std::size_t place) { return !tokens_[place].special || specials == SpecialTokens::kParse; });
    if (found.size_bytes == 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[found.value];
    std::size_t begin = at;
    std::size_t end = at += found.size_bytes;
    if (token.single_word && !stands_alone(text, begin, end)) continue;
    if (token.strips_left) begin = std::max(without_trailing_space(text.substr(0, begin)), plain);
    // The next token may stand in the white space that this one takes.
    if (token.strips_right) end += leading_space(text.substr(end));
    if (begin > plain) segments.push_back({kNoToken, plain, begin});
    segments.push_back({token.id, begin, end});
    plain = end;
  }
  if (plain < text.size()) segments.push_back({kNoToken, plain, text.size()});
  return segments;
}

}  // namespace fathom::text
