#pragma once
// tokenizer.json's patterns are Oniguruma's (Ruby syntax); this program has PCRE2, which reads some of it otherwise.

#include <string>
#include <string_view>

namespace fathom::text {

/// The pattern as PCRE2 must spell it, compiled with PCRE2_UTF, PCRE2_UCP and PCRE2_MULTILINE and "\n" as newline.
/// A pattern that is no pattern stays none: PCRE2 says what is wrong.
/// \throws DataError `WHERE: …`  for syntax that is not translated: read the other way it would cut elsewhere without a
/// word.
std::string pcre2_of_oniguruma(std::string_view pattern, const std::string& where);

}  // namespace fathom::text
