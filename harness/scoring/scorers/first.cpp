#include <fmt/format.h>

#include "harness/scoring/graded.h"

namespace fathom::scoring {
namespace {

/// 1 if the first answer token is the argmax; with several references the mean over their first tokens.
class FirstScorer : public Scorer {
 public:
  Score score(const ScoredReply& reply) const override {
    const auto candidates = graded_candidates(reply);
    if (!candidates || candidates->front().ranks.empty()) return {std::nullopt, {}, "no teacher-forced score"};
    const std::vector<std::int64_t>& ranks = candidates->front().ranks;
    // Where a reference begins is known in a closed vocabulary only: there every word is a token.
    const auto n_references = static_cast<std::size_t>(fathom::scoring::n_references(reply));
    const bool boundaries_known = reply.sample->whole_words && ranks.size() % n_references == 0;
    const std::size_t stride = boundaries_known ? ranks.size() / n_references : ranks.size();
    std::size_t n_first = 0;
    std::size_t hits = 0;
    for (std::size_t i = 0; i < ranks.size(); i += stride) {
      ++n_first;
      hits += ranks[i] == 1 ? 1 : 0;
    }
    return {static_cast<double>(hits) / static_cast<double>(n_first),
            {},
            fmt::format("rank {} in the vocabulary", ranks.front())};
  }
};

std::unique_ptr<Scorer> make_first_scorer() {
  return std::make_unique<FirstScorer>();
}

}  // namespace

ScorerEntry entries::first_entry() {
  return {
      "first",           1, "1 if the answer's first token is the most probable one.", ScoreUnit::kFraction, true, true,
      &make_first_scorer};
}

}  // namespace fathom::scoring
