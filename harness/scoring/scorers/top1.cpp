#include <fmt/format.h>

#include <algorithm>

#include "harness/scoring/graded.h"

namespace fathom::scoring {
namespace {

/// Share of the tokens of the right answer or text that are the most probable ones.
class Top1Scorer : public Scorer {
 public:
  Score score(const ScoredReply& reply) const override {
    const auto candidates = graded_candidates(reply);
    if (!candidates) return {std::nullopt, {}, "no teacher-forced score"};
    const std::vector<std::int64_t>& ranks = candidates->front().ranks;
    if (ranks.empty()) return {std::nullopt, {}, "no ranks"};
    const auto hits = std::count(ranks.begin(), ranks.end(), 1);
    return {static_cast<double>(hits) / static_cast<double>(ranks.size()),
            {},
            fmt::format("{} of {} tokens", hits, ranks.size())};
  }
};

std::unique_ptr<Scorer> make_top1_scorer() {
  return std::make_unique<Top1Scorer>();
}

}  // namespace

ScorerEntry entries::top1_entry() {
  return {"top1",
          1,
          "Share of the right tokens that are the most probable ones.",
          ScoreUnit::kFraction,
          true,
          true,
          &make_top1_scorer};
}

}  // namespace fathom::scoring
