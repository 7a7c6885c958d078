#include <fmt/format.h>

#include "harness/core/text_util.h"
#include "harness/scoring/matching.h"
#include "harness/scoring/scorer.h"

namespace fathom::scoring {
namespace {

/// Share of references that occur in the reply, case ignored: recall.
class AllScorer : public Scorer {
 public:
  Score score(const ScoredReply& reply) const override {
    const std::string text = judged_reply(*reply.sample, reply.reply_text);
    const WordMatch match = reply.sample->whole_words ? WordMatch::kWholeWords : WordMatch::kSubstring;
    std::vector<std::string> found;
    std::vector<std::string> missing;
    for (const std::string& reference : reply.sample->references) {
      (contains_reference(text, reference, match) ? found : missing).push_back(reference);
    }
    if (reply.sample->references.empty()) return {std::nullopt, text, "no references"};
    const std::size_t n = reply.sample->references.size();
    std::string why = fmt::format("{} of {} found", found.size(), n);
    if (!missing.empty()) why += "; missing: " + join(missing, ", ");
    return {static_cast<double>(found.size()) / static_cast<double>(n), text, why};
  }
};

std::unique_ptr<Scorer> make_all_scorer() {
  return std::make_unique<AllScorer>();
}

}  // namespace

ScorerEntry entries::all_entry() {
  return {"all",           1, "Share of the references that occur in the reply.", ScoreUnit::kFraction, true, false,
          &make_all_scorer};
}

}  // namespace fathom::scoring
