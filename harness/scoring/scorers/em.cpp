#include <fmt/format.h>

#include "harness/core/text_util.h"
#include "harness/scoring/matching.h"
#include "harness/scoring/scorer.h"

namespace fathom::scoring {
namespace {

/// 1 if the normalised reply equals a normalised reference; in a closed vocabulary signs are words, so all words count.
class EmScorer : public Scorer {
 public:
  Score score(const ScoredReply& reply) const override {
    const std::string text = judged_reply(*reply.sample, reply.reply_text);
    if (reply.sample->references.empty()) return {std::nullopt, text, "no references"};
    const auto normalize = [closed = reply.sample->whole_words](std::string_view answer) {
      return closed ? replace_all(fold_case(trim(answer)), "\n", " ") : normalize_answer(answer);
    };
    const std::string normal = normalize(text);
    for (const std::string& reference : reply.sample->references) {
      if (normal == normalize(reference)) return {1.0, text, fmt::format("equals: {}", reference)};
    }
    return {0.0, text, fmt::format("equals none of {}", reply.sample->references.size())};
  }
};

std::unique_ptr<Scorer> make_em_scorer() {
  return std::make_unique<EmScorer>();
}

}  // namespace

ScorerEntry entries::em_entry() {
  return {"em",
          1,
          "1 if the reply equals a reference, punctuation and articles aside.",
          ScoreUnit::kFraction,
          true,
          false,
          &make_em_scorer};
}

}  // namespace fathom::scoring
