#include <fmt/format.h>

#include "harness/scoring/graded.h"

namespace fathom::scoring {
namespace {

/// sum of log2 p(answer token), in bits; with several references the mean, each after the ones before it.
class LpScorer : public Scorer {
 public:
  Score score(const ScoredReply& reply) const override {
    const auto candidates = graded_candidates(reply);
    if (!candidates) return {std::nullopt, {}, "no teacher-forced score"};
    const double bits = total_bits(candidates->front());
    const std::size_t n_tokens = candidates->front().logprobs.size();
    return {bits / n_references(reply),
            {},
            fmt::format("{:.3f} bits a token over {} tokens", bits / static_cast<double>(n_tokens), n_tokens)};
  }
};

std::unique_ptr<Scorer> make_lp_scorer() {
  return std::make_unique<LpScorer>();
}

}  // namespace

ScorerEntry entries::lp_entry() {
  return {"lp",           1, "Log2-probability of the right answer, teacher-forced.", ScoreUnit::kBits, true, true,
          &make_lp_scorer};
}

}  // namespace fathom::scoring
