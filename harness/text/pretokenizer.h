#pragma once
// The first step of tokenizing: a text is cut into words, and merges never cross a cut.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::text {

/// What becomes of the matches of a pattern, by the names of tokenizer.json.
enum class SplitBehavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };

/// Cuts a text by a regular expression with Unicode classes, in Oniguruma's syntax.
struct SplitStep {
  std::string pattern;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;  ///< what lies between the matches counts as the matches
  bool bytes = false;   ///< the pattern sees bytes, not characters; only such steps may follow
};

/// Immutable; safe to use from several threads.
class Pretokenizer {
 public:
  /// Names as GGUF files give them: gpt-2, llama-bpe, qwen2, smollm, tekken, … sorted.
  static std::vector<std::string> names();
  /// \throws DataError `WHERE: …`  for a name that is not known.
  Pretokenizer(std::string_view name, const std::string& where);
  /// Steps are applied one after the other: the pieces of one are the texts of the next. No steps: a text is one word.
  /// \throws DataError `WHERE: …`  for a pattern that is none.
  Pretokenizer(const std::vector<SplitStep>& steps, const std::string& where);
  ~Pretokenizer();
  Pretokenizer(Pretokenizer&&) noexcept;
  Pretokenizer& operator=(Pretokenizer&&) noexcept;

  /// The words in order, none empty; together they are the text, less what a step removes. A byte that is not UTF-8 is
  /// a word of its own. \throws DataError  if a pattern needs too much work on this text.
  std::vector<std::string_view> split(std::string_view text) const;
  /// True if a word that is a token itself is taken whole, whatever the merges would make of it.
  bool takes_whole_words() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fathom::text
