#pragma once
// Sentence templates of the built-in prose and the English word forms they ask for (tasks/data/haystack/README.md).

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::text {

/// Third person: carry, carries.
std::string verb_third_person(std::string_view verb);
/// Past tense and participle of a regular verb: tap, tapped.
std::string verb_past(std::string_view verb);
/// The -ing form: tie, tying.
std::string verb_ing_form(std::string_view verb);
/// "a" or "an", by the first word of what follows.
std::string_view article_before(std::string_view following);

enum class ProseSlot { kAdjective, kNoun, kVerb, kVerbThirdPerson, kVerbPast, kVerbIng, kArticle };

/// A piece of a template: a slot, or fixed text with one or more alternatives.
struct ProsePiece {
  enum class Kind { kText, kSlot };
  Kind kind = Kind::kText;
  ProseSlot slot = ProseSlot::kNoun;      ///< for kSlot
  std::vector<std::string> alternatives;  ///< for kText; one entry = plain text
};

using ProseTemplate = std::vector<ProsePiece>;

/// One template a line; '#' begins a comment line.
/// \throws DataError `FILE:LINE: message`  for an unknown slot, an unclosed or empty bracket, a digit, an empty
/// alternative, a template
///   without {adj} or {noun}, or no template at all.
std::vector<ProseTemplate> parse_prose_templates(std::string_view text, const std::string& file);

}  // namespace fathom::text
