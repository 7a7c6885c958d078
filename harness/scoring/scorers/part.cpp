#include <fmt/format.h>

#include "harness/scoring/matching.h"
#include "harness/scoring/scorer.h"

namespace fathom::scoring {
namespace {

/// 1 if any reference occurs in the reply; never divided by their number, because they are wordings of one answer.
class PartScorer : public Scorer {
 public:
  Score score(const ScoredReply& reply) const override {
    const std::string text = judged_reply(*reply.sample, reply.reply_text);
    if (reply.sample->references.empty()) return {std::nullopt, text, "no references"};
    const WordMatch match = reply.sample->whole_words ? WordMatch::kWholeWords : WordMatch::kSubstring;
    for (const std::string& reference : reply.sample->references) {
      if (contains_reference(text, reference, match)) return {1.0, text, fmt::format("found: {}", reference)};
    }
    return {0.0, text, fmt::format("none of {} found", reply.sample->references.size())};
  }
};

std::unique_ptr<Scorer> make_part_scorer() {
  return std::make_unique<PartScorer>();
}

}  // namespace

ScorerEntry entries::part_entry() {
  return {"part", 1, "1 if any reference occurs in the reply.", ScoreUnit::kFraction, true, false, &make_part_scorer};
}

}  // namespace fathom::scoring
