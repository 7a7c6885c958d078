#pragma once
// How a reply is compared with references (tasks specification 0.6).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/task/sample.h"

namespace fathom::scoring {

/// Removes `<think>…</think>` (an unclosed one reaches to the end), then clean-up `R`: trim; bytes 0x00–0x1F become
/// newlines; trim.
std::string clean_reply(std::string_view reply);

/// Simple lower-casing (ASCII, Latin-1, Latin Extended-A, Greek, Cyrillic, full-width letters); full-width digits
/// become ASCII. Other characters and ill-formed bytes stay.
std::string fold_case(std::string_view text);

/// The part of a reply that is judged: clean_reply(), and only its first line where the sample says so.
std::string judged_reply(const task::Sample& sample, std::string_view reply);

/// Clean-up `N`: lower case, without ASCII punctuation and the articles a, an, the, white space collapsed. A minus sign
/// in front of a number stays.
std::string normalize_answer(std::string_view text);

enum class WordMatch { kSubstring, kWholeWords };

/// True if `reference` occurs in `reply`, both folded; with kWholeWords only between white space (or the ends), any
/// white space between its words.
bool contains_reference(std::string_view reply, std::string_view reference, WordMatch match);

/// The label of `labels` that comes first in `text`, case ignored, the longest where several begin at one place; Latin
/// letters beside a label make it another word. Nothing if there is none.
std::optional<std::string> first_label(std::string_view text, const std::vector<std::string>& labels);

/// The form of a value, read off the references: what the task's values look like.
struct AnswerForm {
  enum class Kind {
    kDigits,     ///< a run of exactly `size` digits
    kUuid,       ///< 8-4-4-4-12 hexadecimal digits
    kCapitals,   ///< a run of exactly `size` upper-case letters
    kLowerWord,  ///< a run of lower-case letters, exactly `size` of them or any number (0)
    kPoolWords,  ///< `size` words in a row, each `pool` (0: any letter) and a number (closed vocabulary)
  };
  Kind kind = Kind::kDigits;
  std::size_t size = 0;
  char pool = 0;
};

/// Nothing if the references are wordings of one answer, or have no form in common that can be told from running text.
std::optional<AnswerForm> infer_answer_form(const task::Sample& sample);

/// All values of this form in a cleaned reply, in order, lower case as fold_case() makes it. Whatever stands between
/// them is ignored, so "A, B and C" and "A B C" give the same values.
std::vector<std::string> parse_values(std::string_view reply, const AnswerForm& form);

/// parse_values() by the sample's own form; nothing if it has none.
std::optional<std::vector<std::string>> parse_sample_values(const task::Sample& sample, std::string_view reply);

/// The references as fold_case() makes them.
std::vector<std::string> folded_references(const task::Sample& sample);

}  // namespace fathom::scoring
