#pragma once
// Sets of characters, and how a pattern of PCRE2 spells them.

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::text {

/// What one character may be: `[items]`, `[^items]`, or a pattern of one character where no such class can say it.
struct CharSet {
  std::string items;
  bool negated = false;
  std::optional<std::string> pattern;
  std::optional<std::set<std::string_view>> categories;  ///< if the set is a union of these and nothing else

  std::string text() const;
};

CharSet listed(std::string items);
CharSet complement(CharSet set);
CharSet union_of(const std::vector<CharSet>& sets);
CharSet intersection_of(const std::vector<CharSet>& sets);
/// One of Unicode's general categories ("Lu"), or all that begin with a letter ("L").
CharSet category_set(std::string_view name);
/// A category or a script by any of Oniguruma's names for it: case, blanks, "_" and "-" do not count. Nothing if the
/// name is that of another set; one that is no name at all becomes a script that PCRE2 refuses.
std::optional<CharSet> property_set(std::string_view name);

}  // namespace fathom::text
