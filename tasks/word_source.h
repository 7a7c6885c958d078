#pragma once
// The words of common_words: a shuffled pool, and compounds where it ends (tasks specification 1.3).

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "harness/core/random.h"
#include "harness/task/task.h"

namespace fathom::tasks {

/// Words of the pack's lists, or key, value and filler words of a closed vocabulary. Sorted by list, each once.
std::vector<std::string> listed_words(const task::TaskContext& context);

/// Distinct words in random order: first those of the lists, then (open vocabulary) compounds of two nouns.
/// Word j depends on the key and on the words before it, never on how many are used. Thread-safe.
class WordSource {
 public:
  /// \param rejected  words that must not come; may be empty.
  WordSource(const task::TaskContext& context, const RngKey& key, std::function<bool(const std::string&)> rejected);

  std::string word(std::int64_t j) const;
  /// Number of words there are; nothing = practically endless.
  std::optional<std::int64_t> size() const;

 private:
  void fill_to(std::int64_t end) const;
  std::string compound(std::int64_t j) const;

  RngKey key_;
  std::function<bool(const std::string&)> rejected_;
  const std::vector<std::string>* nouns_ = nullptr;  // null: no compounds
  mutable std::mutex mutex_;
  mutable std::vector<std::string> words_;
  mutable std::unordered_set<std::string> used_;
};

}  // namespace fathom::tasks
