#include <fmt/format.h>

#include "harness/core/text_util.h"
#include "harness/scoring/matching.h"
#include "harness/scoring/scorer.h"

namespace fathom::scoring {
namespace {

/// 1 if any reference, normalised, is a substring of the normalised reply (whole words in a closed vocabulary).
class SubspanScorer : public Scorer {
 public:
  Score score(const ScoredReply& reply) const override {
    const std::string text = judged_reply(*reply.sample, reply.reply_text);
    if (reply.sample->references.empty()) return {std::nullopt, text, "no references"};
    const std::string normal = normalize_answer(text);
    const WordMatch match = reply.sample->whole_words ? WordMatch::kWholeWords : WordMatch::kSubstring;
    for (const std::string& reference : reply.sample->references) {
      const std::string wanted = normalize_answer(reference);
      if (!wanted.empty() && contains_reference(normal, wanted, match)) {
        return {1.0, text, fmt::format("found: {}", reference)};
      }
    }
    return {0.0, text, fmt::format("none of {} found", reply.sample->references.size())};
  }
};

std::unique_ptr<Scorer> make_subspan_scorer() {
  return std::make_unique<SubspanScorer>();
}

}  // namespace

ScorerEntry entries::subspan_entry() {
  return {"subspan",
          1,
          "1 if any reference occurs in the reply, punctuation and articles aside.",
          ScoreUnit::kFraction,
          true,
          false,
          &make_subspan_scorer};
}

}  // namespace fathom::scoring
