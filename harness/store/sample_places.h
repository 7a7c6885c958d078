#pragma once
// What the rows of a run share: its variants, its tasks, and the samples that its variants answered.

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "harness/core/hash.h"
#include "harness/store/sqlite.h"

namespace fathom::store {

/// Where a sample stands in the sweep, and how its prompt fills its length.
struct SamplePlace {
  std::int64_t sample_id = 0;
  std::int64_t task_id = 0;
  std::int64_t length_tokens = 0;
  std::optional<std::int32_t> depth_bp;
  std::int64_t index = 0;
  bool is_control = false;
  std::int64_t prompt_tokens = 0, slack_tokens = 0, haystack_units = 0;
  std::optional<Hash128> address;  ///< nothing: no hash, the row is damaged
};

/// Samples by number, each read once: a run of many variants has as many results a sample, and every query over
/// results needs them.
class SamplePlaces {
 public:
  explicit SamplePlaces(Database& database) : database_(database) {}

  /// \throws StoreError for a sample that is not there.
  std::size_t number(std::int64_t sample_id);
  const SamplePlace& at(std::size_t number) const { return places_[number]; }
  const SamplePlace& of(std::int64_t sample_id) { return places_[number(sample_id)]; }
  std::size_t size() const { return places_.size(); }

 private:
  Database& database_;
  std::vector<SamplePlace> places_;
  std::unordered_map<std::int64_t, std::size_t> number_of_;
};

struct RunVariant {
  std::int64_t variant_id = 0;
  std::int32_t ordinal = 0;  ///< index into RunInfo::variants
};

/// One run as queries over its results see it.
struct RunScope {
  Database& database;
  SamplePlaces& places;
  std::int64_t run_id = 0;
  std::map<std::int64_t, std::int32_t> task_of_id;  ///< index into ResultReader::tasks by task_id
  std::vector<RunVariant> variants;                 ///< by ordinal
};

std::vector<RunVariant> read_run_variants(Database& database, std::int64_t run_id);

}  // namespace fathom::store
