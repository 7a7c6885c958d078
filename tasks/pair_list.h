#pragma once
// A haystack of key-value pairs: distractor needles, or the entries of an object.

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/random.h"
#include "harness/task/haystack.h"
#include "tasks/value_pool.h"

namespace fathom::tasks {

/// Pairs by number; a unit of the haystack is a pair as it is written. Thread-safe.
class PairHaystack : public task::Haystack {
 public:
  /// Key and value of pair `i`. i < size().
  virtual std::pair<std::string, std::string> pair(std::int64_t i) const = 0;
};

struct PairListSpec {
  ValuePool keys;
  ValuePool values;
  DistinctDraws used;     ///< what no pair may hold
  std::int64_t most = 0;  ///< pairs that the pools allow; ignored where they are practically endless
  RngKey key;             ///< pair j is drawn from key.child(j)
  std::string separator;  ///< between two pairs
  std::function<std::string(const std::string& key, const std::string& value)> render;
};

/// All keys differ, all values differ. Pair j depends on the spec and on the pairs before it, never on how many are
/// used. Thread-safe.
class PairListHaystack : public PairHaystack {
 public:
  explicit PairListHaystack(PairListSpec spec) : spec_(std::move(spec)), used_(spec_.used) {}

  std::vector<task::HaystackUnit> units(std::int64_t begin, std::int64_t end) const override;
  std::optional<std::int64_t> size() const override;
  std::string limit_reason() const override;
  std::pair<std::string, std::string> pair(std::int64_t i) const override;

 private:
  void fill_to(std::int64_t end) const;

  PairListSpec spec_;
  mutable std::mutex mutex_;
  mutable DistinctDraws used_;
  mutable std::vector<std::pair<std::string, std::string>> pairs_;
};

}  // namespace fathom::tasks
