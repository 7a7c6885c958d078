#pragma once
// Built-in haystack prose: unlimited, grammatical, meaningless, made offline from sentence templates and word lists
// (tasks/data/haystack/README.md). Sentence i is a pure function of (seed, i).

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::text {

/// Words of one shipped list, for example word_list("nouns_en"). \throws InvariantError for an unknown list.
const std::vector<std::string>& word_list(std::string_view name);

/// A sentence and what separates it from the one before: "" for the first, a newline where a paragraph begins, else a
/// blank (English) or nothing (Chinese).
struct ProseSentence {
  std::string separator;
  std::string text;
};

class ProseGenerator {
 public:
  /// \param language  "en" or "zh".
  /// \param excluded_words  must not occur in the prose (whole words, case ignored; Chinese: substrings).
  /// \throws ConfigError  for a language without built-in prose.
  /// \throws DataError  if the exclusion leaves too few words or templates.
  ProseGenerator(std::string_view language, std::uint64_t seed, const std::vector<std::string>& excluded_words = {});
  ~ProseGenerator();
  ProseGenerator(ProseGenerator&&) noexcept;
  ProseGenerator& operator=(ProseGenerator&&) noexcept;

  /// Safe to call from several threads.
  ProseSentence sentence(std::uint64_t index) const;
  /// Hash of templates and word lists.
  static std::string fingerprint(std::string_view language);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fathom::text
