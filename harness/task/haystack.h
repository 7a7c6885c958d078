#pragma once
// What fills the context: sources of haystack units, and their sizes in tokens.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/core/random.h"
#include "harness/text/text_corpus.h"
#include "harness/text/tokenizer.h"

namespace fathom::task {

/// The piece by which a haystack grows: a sentence, word, noise line, distractor needle or key-value pair.
struct HaystackUnit {
  std::string separator;  ///< between this unit and the one before
  std::string text;
  bool boundary = true;  ///< a needle may stand in front of it (false inside a sentence)
};

/// Endless or finite sequence of units. Unit i depends on the source and i only, never on how many are used.
/// Thread-safe.
class Haystack {
 public:
  virtual ~Haystack() = default;
  /// Units begin..end-1. end <= size().
  virtual std::vector<HaystackUnit> units(std::int64_t begin, std::int64_t end) const = 0;
  /// Number of units there are; nothing = unlimited.
  virtual std::optional<std::int64_t> size() const { return std::nullopt; }
  /// What runs out, for messages: "prose of 'file' holds 12 units".
  virtual std::string limit_reason() const { return {}; }
};

/// One fixed line repeated.
std::unique_ptr<Haystack> make_noise_haystack(std::string line, std::string separator);

/// Sentences of the built-in generator. \param language  "en" or "zh". \param excluded  words that must not occur.
std::unique_ptr<Haystack> make_prose_haystack(std::string_view language, std::uint64_t seed,
                                              const std::vector<std::string>& excluded = {});

/// Closed vocabulary: sentences of 6 filler words f0…f(n_fillers-1) and the stop word ".".
std::unique_ptr<Haystack> make_filler_haystack(const RngKey& key, std::int64_t n_fillers);

/// Sentences of a user's text from sentence `offset` on, wrapping around at the end; every sentence once, or endlessly
/// with `kRepeat`.
enum class CorpusRepeat { kOnce, kRepeat };
std::unique_ptr<Haystack> make_corpus_haystack(std::shared_ptr<const text::TextCorpus> corpus, std::int64_t offset,
                                               CorpusRepeat repeat);

/// The blank-separated words of another haystack's units, each a unit of its own; boundaries stay at sentence starts.
std::unique_ptr<Haystack> make_word_haystack(std::unique_ptr<Haystack> sentences);

/// The first units of a haystack with the token count at each unit's end. Immutable.
struct MeasuredHaystack {
  std::vector<HaystackUnit> units;
  std::vector<std::int64_t> end_tokens;  ///< [units] S(1), S(2), …: tokens of the first units in place
  std::int64_t largest_unit_tokens = 1;
  bool complete = false;  ///< the source holds no further unit

  std::int64_t size() const { return static_cast<std::int64_t>(units.size()); }
  /// S(n), tokens of the first n units.
  std::int64_t tokens(std::int64_t n) const { return n == 0 ? 0 : end_tokens[static_cast<std::size_t>(n - 1)]; }
};

/// Measures haystacks once and keeps the latest: all lengths and depths of a sample share one. Thread-safe.
class HaystackCache {
 public:
  struct Entry {
    std::shared_ptr<const Haystack> source;
    std::shared_ptr<const MeasuredHaystack> measured;
  };
  using Factory = std::function<std::shared_ptr<const Haystack>()>;

  /// The haystack called `id`, measured to at least `min_units` units and `min_tokens` tokens, or to its end.
  /// \param make  called if it is not known yet; must depend on `id` only.
  Entry get(const std::string& id, const Factory& make, const text::Tokenizer& tokenizer, std::int64_t min_units,
            std::int64_t min_tokens);

 private:
  std::mutex mutex_;
  std::vector<std::pair<std::string, Entry>> entries_;  // oldest first
};

/// Appends units of `source` until there are at least `min_units` with `min_tokens` tokens, or none are left.
MeasuredHaystack measure_haystack(const Haystack& source, const text::Tokenizer& tokenizer, std::int64_t min_units,
                                  std::int64_t min_tokens, const MeasuredHaystack& begin = {});

}  // namespace fathom::task
