#include <fmt/format.h>

#include <cmath>
#include <map>

#include "harness/scoring/graded.h"
#include "harness/scoring/position_bins.h"

namespace fathom::scoring {
namespace {

/// Running text only: what a token costs by the number of tokens in front of it. The bins are the answer; there is no
/// one value.
class BitsByPositionScorer : public Scorer {
 public:
  Score score(const ScoredReply& reply) const override {
    if (reply.sample->metric != task::TaskMetric::kTop1) return {std::nullopt, {}, "no running text"};
    const auto candidates = graded_candidates(reply);
    if (!candidates) return {std::nullopt, {}, "no teacher-forced score"};
    PositionBits bits;
    std::int64_t position = reply.sample->prompt_tokens();
    for (const double logprob : candidates->front().logprobs) bits.add(position++, -logprob / std::log(2.0));
    return {std::nullopt, bits.text(), "bits by position, bins of a quarter octave: first position=mean/tokens"};
  }
};

std::unique_ptr<Scorer> make_bits_by_position_scorer() {
  return std::make_unique<BitsByPositionScorer>();
}

}  // namespace

ScorerEntry entries::bits_by_position_entry() {
  return {"bits_by_position",
          1,
          "Bits a token of running text by its position, in bins of a quarter octave.",
          ScoreUnit::kBits,
          false,
          true,
          &make_bits_by_position_scorer};
}

}  // namespace fathom::scoring
