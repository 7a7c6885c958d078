#pragma once
// Keys, values and names of the tasks: forms, how many there are, draws without repetition (tasks specification 1.1).

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "harness/core/random.h"
#include "harness/task/haystack.h"
#include "harness/task/task.h"

namespace fathom::tasks {

/// All strings of one form.
struct ValuePool {
  double size = 0;
  std::function<std::string(RngStream&)> draw;  ///< uniform

  bool holds(std::int64_t count) const { return static_cast<double>(count) <= size; }
};

/// Adjective + joiner + noun; key words in a closed vocabulary. \throws ConfigError for a pack without word lists.
ValuePool word_keys(const task::TaskContext& context);
/// Numbers of exactly `n_digits` digits, uniform. In a closed vocabulary: one value word, or `n_digits` digit words
/// where given.
ValuePool numbers(const task::TaskContext& context, std::optional<std::int64_t> n_digits, std::int64_t default_digits);
/// 128 bits in version-4 layout; four value words in a closed vocabulary.
ValuePool uuids(const task::TaskContext& context);
/// Integers low…high, or value words.
ValuePool integers(const task::TaskContext& context, std::int64_t low, std::int64_t high);
/// `n_letters` upper-case letters, or key words.
ValuePool variable_names(const task::TaskContext& context, std::int64_t n_letters);
/// `n_letters` lower-case letters, or key words.
ValuePool invented_words(const task::TaskContext& context, std::int64_t n_letters);
/// Names of towns, ships, rivers: two or three syllables, capitalised, in no word list; or name words.
ValuePool invented_names(const task::TaskContext& context);
/// Two invented names; one name word in a closed vocabulary.
ValuePool person_names(const task::TaskContext& context);
/// The entries of a pack's comma-separated list, or value words.
ValuePool list_entries(const task::TaskContext& context, std::string_view list);
/// One value word of a closed vocabulary.
ValuePool value_words(const task::TaskContext& context);

/// Draws strings that differ from each other and from what was added.
class DistinctDraws {
 public:
  void add(const std::string& used) { used_.insert(used); }
  /// The next draw of `pool` that is new and that `allowed` (if set) accepts; nothing if the pool is used up.
  std::optional<std::string> try_draw(const ValuePool& pool, RngStream& rng);
  /// \throws InvariantError  if the pool is used up; check sizes first.
  std::string draw(const ValuePool& pool, RngStream& rng);
  std::vector<std::string> draw(const ValuePool& pool, RngStream& rng, std::int64_t count);

  /// Further strings to reject, for example those that stand in the haystack.
  void set_rejected(std::function<bool(const std::string&)> rejected) { rejected_ = std::move(rejected); }

 private:
  std::unordered_set<std::string> used_;
  std::function<bool(const std::string&)> rejected_;
};

/// Knows what already stands in a prompt, ASCII case ignored. A key or value that does is drawn again, never the
/// haystack.
class TextCollisions {
 public:
  /// \param haystack_text  called on the first question only; unset: the haystack cannot hold a value of the form.
  TextCollisions(const std::string& fixed_text, std::function<std::string()> haystack_text);
  bool contains(const std::string& value);

 private:
  std::string fixed_text_;
  std::function<std::string()> haystack_text_;
  std::optional<std::string> haystack_lower_;
};

/// All measured units as one text.
std::string haystack_text(const task::MeasuredHaystack& haystack);

}  // namespace fathom::tasks
