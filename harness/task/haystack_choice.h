#pragma once
// Which haystack a task stands in, and how needles are placed in it.

#include <memory>
#include <string>
#include <vector>

#include "harness/task/haystack.h"
#include "harness/task/placement.h"
#include "harness/task/sample_key.h"
#include "harness/task/task.h"

namespace fathom::task {

enum class HaystackKind { kNoise, kProse, kCorpus, kNeedles };

/// The run's wish, else the task's own. Needle haystacks are part of their task and stay.
HaystackKind resolve_haystack(const HaystackSpec& wish, HaystackKind own);

/// Text in which needles of one task stand: what kind, made for which sample. Thread-safe.
class TextHaystack {
 public:
  /// \param kind  not kNeedles.
  /// \param excluded  words that the built-in prose must not hold; a user's text is left as it is.
  TextHaystack(const TaskContext& context, HaystackKind kind, TaskVariant variant,
               std::vector<std::string> excluded = {});

  HaystackKind kind() const { return kind_; }
  /// Between a needle and its neighbours: a newline in noise, a blank in prose, nothing in Chinese prose.
  const std::string& joiner() const { return joiner_; }
  /// Grows by words instead of sentences (RULER's prose).
  bool by_words() const { return by_words_; }
  std::string fingerprint() const;

  HaystackCache::Entry get(const SampleKeyParts& key, std::int64_t min_units, std::int64_t min_tokens) const;

 private:
  std::unique_ptr<Haystack> make(const SampleKeyParts& key) const;
  SampleKeyParts shared_key(const SampleKeyParts& key) const;

  const TaskContext context_;
  HaystackKind kind_;
  TaskVariant variant_;
  std::vector<std::string> excluded_;
  bool by_words_;
  std::string joiner_;
  mutable HaystackCache cache_;
};

/// Size of the closed vocabulary's filler pool.
std::int64_t filler_pool_size(const text::Tokenizer& tokenizer);

}  // namespace fathom::task
