#pragma once
// The first step of byte-level BPE: a text is cut into words, and merges never cross a cut.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::text {

/// Immutable; safe to use from several threads.
class Pretokenizer {
 public:
  /// Names as GGUF files give them: gpt-2, llama-bpe (also llama3, llama-v3), qwen2, smollm.
  static std::vector<std::string> names();
  /// \throws DataError `WHERE: …`  for a name that is not known.
  Pretokenizer(std::string_view name, const std::string& where);
  ~Pretokenizer();
  Pretokenizer(Pretokenizer&&) noexcept;
  Pretokenizer& operator=(Pretokenizer&&) noexcept;

  /// The words in order; together they are the text. A byte that is not UTF-8 is a word of its own.
  std::vector<std::string_view> split(std::string_view text) const;
  /// True if a word that is a token itself is taken whole, whatever the merges would make of it.
  bool takes_whole_words() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fathom::text
