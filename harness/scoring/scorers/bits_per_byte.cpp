#include <fmt/format.h>

#include "harness/scoring/graded.h"

namespace fathom::scoring {
namespace {

/// -lp / bytes of the right answer or text: comparable across tokenizers.
class BitsPerByteScorer : public Scorer {
 public:
  Score score(const ScoredReply& reply) const override {
    const auto candidates = graded_candidates(reply);
    if (!candidates) return {std::nullopt, {}, "no teacher-forced score"};
    const auto n_bytes = static_cast<double>(reply.sample->answer_text.size());
    if (n_bytes == 0) return {std::nullopt, {}, "no text"};
    return {-total_bits(candidates->front()) / n_bytes, {}, fmt::format("{} bytes", n_bytes)};
  }
};

std::unique_ptr<Scorer> make_bits_per_byte_scorer() {
  return std::make_unique<BitsPerByteScorer>();
}

}  // namespace

ScorerEntry entries::bits_per_byte_entry() {
  return {"bits_per_byte",           1, "Bits that a byte of the right text costs.", ScoreUnit::kBits, false, true,
          &make_bits_per_byte_scorer};
}

}  // namespace fathom::scoring
