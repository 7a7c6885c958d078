#pragma once
// What happens to a text before it is cut into words: blanks become "▁", a blank is put in front, Unicode is composed.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::text {

/// A text on its way through the steps. `ends` is empty unless the caller wants to know where the bytes come from.
struct NormalizedText {
  std::string text;
  std::vector<std::size_t> ends;  ///< for each byte of `text`: offset in the source just behind what it stands for
};

/// Bytes `begin` to `end` of a text; its origins count from where the stretch begins in the source.
NormalizedText slice(const NormalizedText& text, std::size_t begin, std::size_t end);
/// Offset in the source just behind the first `size_bytes` of a text that knows its origins.
std::size_t source_offset(const NormalizedText& text, std::size_t size_bytes);

/// Where a stretch of text between added tokens stands.
struct SegmentPlace {
  bool begins_text = true;    ///< nothing stands in front of it
  bool after_special = true;  ///< it begins the text or follows a special token
};

/// One step; immutable.
struct NormalizerStep {
  std::string canonical;  ///< text that says what it does, for fingerprints
  std::function<void(NormalizedText&, const SegmentPlace&)> apply;
};

/// For which stretches a step puts its text in front.
enum class PrefixPlace { kEverySegment, kTextAndAfterSpecial, kTextOnly };

bool place_holds(PrefixPlace wanted, const SegmentPlace& place);

namespace normalize {
/// Puts `prefix` in front of a text that is not empty.
NormalizerStep prepend(std::string prefix, PrefixPlace place);
/// The same unless the text begins with it already.
NormalizerStep prepend_unless_there(std::string prefix, PrefixPlace place);
NormalizerStep replace(std::string from, std::string to);
/// Blanks at both ends are dropped, several in a row become one (SentencePiece's remove_extra_whitespaces).
NormalizerStep collapse_blanks();
/// Two blanks or more become `to`.
NormalizerStep shorten_blanks(std::string to);
/// As collapse_blanks for all white space of Unicode, which becomes a blank.
NormalizerStep collapse_space();
/// White space at the ends is dropped.
NormalizerStep strip(bool left, bool right);
/// Unicode composition; what is not UTF-8 stays.
NormalizerStep nfc();
NormalizerStep nfkc();
/// SentencePiece's table of replacements: a double array trie and the texts it leads to. The longest match counts.
/// \throws DataError `WHERE: …`  for a table whose sizes do not fit together.
NormalizerStep charsmap(std::string table, const std::string& where);
/// The same table as Hugging Face's tokenizers read it: one user-perceived character at a time.
NormalizerStep charsmap_by_graphemes(std::string table, const std::string& where);

struct SentencePieceRules {
  std::string charsmap;                     ///< empty = none
  std::vector<std::string> shielded;        ///< user-defined pieces, which stay as they are
  bool collapses_blanks = false;            ///< remove_extra_whitespaces
  std::optional<PrefixPlace> blank_prefix;  ///< add_dummy_prefix
  std::string blank_mark;                   ///< stands for a blank afterwards
};
/// All that SentencePiece does to a text. \throws DataError `WHERE: …`  as charsmap().
NormalizerStep sentencepiece(SentencePieceRules rules, const std::string& where);
}  // namespace normalize

/// Steps in their order.
class Normalizer {
 public:
  Normalizer() = default;
  explicit Normalizer(std::vector<NormalizerStep> steps) : steps_(std::move(steps)) {}
  enum class Origins { kForget, kKeep };
  NormalizedText apply(std::string_view text, const SegmentPlace& place, Origins origins) const;
  /// The same for a text that other steps have changed already.
  void apply(NormalizedText& text, const SegmentPlace& place) const;
  std::string canonical() const;

 private:
  std::vector<NormalizerStep> steps_;
};

/// Writes a step's result piece by piece while it reads the text before it.
class TextRewriter {
 public:
  explicit TextRewriter(const NormalizedText& from) : from_(from) { to_.text.reserve(from.text.size()); }
  std::size_t position() const { return at_; }
  bool done() const { return at_ == from_.text.size(); }
  std::string_view rest() const { return std::string_view(from_.text).substr(at_); }
  /// The next `size_bytes` as they are.
  void copy(std::size_t size_bytes);
  /// `text` for the next `size_bytes`, which may be none.
  void replace(std::size_t size_bytes, std::string_view text);
  NormalizedText take() { return std::move(to_); }

 private:
  const NormalizedText& from_;
  NormalizedText to_;
  std::size_t at_ = 0;
};

}  // namespace fathom::text
