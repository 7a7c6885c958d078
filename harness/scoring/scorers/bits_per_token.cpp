#include <fmt/format.h>

#include "harness/scoring/graded.h"

namespace fathom::scoring {
namespace {

/// -lp / tokens of the right answer or text.
class BitsPerTokenScorer : public Scorer {
 public:
  Score score(const ScoredReply& reply) const override {
    const auto candidates = graded_candidates(reply);
    if (!candidates) return {std::nullopt, {}, "no teacher-forced score"};
    const auto n_tokens = static_cast<double>(candidates->front().logprobs.size());
    return {-total_bits(candidates->front()) / n_tokens, {}, fmt::format("{} tokens", n_tokens)};
  }
};

std::unique_ptr<Scorer> make_bits_per_token_scorer() {
  return std::make_unique<BitsPerTokenScorer>();
}

}  // namespace

ScorerEntry entries::bits_per_token_entry() {
  return {"bits_per_token",           1, "Bits that a token of the right text costs.", ScoreUnit::kBits, false, true,
          &make_bits_per_token_scorer};
}

}  // namespace fathom::scoring
