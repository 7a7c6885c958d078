#pragma once
// Splits prose into sentences (tasks specification 2.1).

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::text {

/// Byte range of one sentence, surrounding white space left out.
struct SentenceSpan {
  std::size_t begin;
  std::size_t end;
};

/// A sentence ends after . ! ? or … plus closing quotes or brackets, if then comes white space and an upper-case
/// letter, digit or opening quote, or a line end or the text's end; not after common abbreviations, a single initial,
/// or inside a number; and after 。！？ plus closing 」』”）. A newline always ends one.
std::vector<SentenceSpan> split_sentences(std::string_view text);

}  // namespace fathom::text
