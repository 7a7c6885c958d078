#include <fmt/format.h>

#include "harness/scoring/graded.h"

namespace fathom::scoring {
namespace {

/// Rank of the right answer among the candidates, 1 = best.
class RankScorer : public Scorer {
 public:
  Score score(const ScoredReply& reply) const override {
    const auto candidates = graded_candidates(reply);
    if (!candidates) return {std::nullopt, {}, "no teacher-forced score"};
    return {candidate_rank(*candidates), {}, fmt::format("of {} candidates", candidates->size())};
  }
};

std::unique_ptr<Scorer> make_rank_scorer() {
  return std::make_unique<RankScorer>();
}

}  // namespace

ScorerEntry entries::rank_entry() {
  return {"rank",           1,     "Rank of the right answer among values of its form; 1 is best.",
          ScoreUnit::kRank, false, true,
          &make_rank_scorer};
}

}  // namespace fathom::scoring
