#include <fmt/format.h>
#include <algorithm>

#include "harness/scoring/graded.h"

namespace fathom::scoring {
namespace {

/// lp of the right answer minus the largest lp of another candidate, in bits.
class MarginScorer : public Scorer {
 public:
  Score score(const ScoredReply& reply) const override {
    const auto candidates = graded_candidates(reply);
    if (!candidates) return {std::nullopt, {}, "no teacher-forced score"};
    if (candidates->size() < 2) return {std::nullopt, {}, "no other candidate"};
    double best = total_bits((*candidates)[1]);
    for (std::size_t i = 2; i < candidates->size(); ++i) best = std::max(best, total_bits((*candidates)[i]));
    return {(total_bits(candidates->front()) - best) / n_references(reply),
            {},
            fmt::format("against {} others", candidates->size() - 1)};
  }
};

std::unique_ptr<Scorer> make_margin_scorer() {
  return std::make_unique<MarginScorer>();
}

}  // namespace

ScorerEntry entries::margin_entry() {
  return {"margin",           1,    "Bits by which the right answer leads the best other candidate.",
          ScoreUnit::kBits,   true, true,
          &make_margin_scorer};
}

}  // namespace fathom::scoring
