#pragma once
// Scorers judge one answered sample. They never average: metrics are computed when results are read.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/registry.h"
#include "harness/lm/language_model.h"
#include "harness/task/sample.h"

namespace fathom::scoring {

struct Score {
  std::optional<double>
      value;           ///< in the scorer's declared range; nothing = not scored (NULL in the database), never NaN or -1
  std::string answer;  ///< what was taken from the completion
  std::string explanation;  ///< why, for a person who reads one row
};

/// What a scorer sees.
struct ScoredReply {
  const task::Sample* sample = nullptr;
  const lm::Completion* completion = nullptr;
  std::string reply_text;  ///< decoded generated ids only
  /// Teacher-forced scores of sample->candidates, same order; empty if graded scores are off.
  std::vector<lm::ContinuationScore> candidates;
};

class Scorer {
 public:
  virtual ~Scorer() = default;
  virtual Score score(const ScoredReply& reply) const = 0;
};

enum class ScoreUnit { kFraction, kBits, kRank, kCount };

struct ScorerEntry {
  std::string_view name;  ///< stored with results; stable for ever
  std::int32_t version;
  std::string_view summary;
  ScoreUnit unit;
  bool higher_is_better;
  bool needs_candidates;  ///< a graded score
  std::unique_ptr<Scorer> (*make)();
};

/// One function a line of scorers.inc; each is defined in the scorer's own file.
namespace entries {
#define FATHOM_SCORER(name) ScorerEntry name##_entry();
#include "harness/scoring/scorers.inc"
#undef FATHOM_SCORER
}  // namespace entries

const Registry<ScorerEntry>& scorers();

}  // namespace fathom::scoring
