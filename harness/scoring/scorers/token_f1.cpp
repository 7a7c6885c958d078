#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "harness/core/text_util.h"
#include "harness/scoring/matching.h"
#include "harness/scoring/scorer.h"

namespace fathom::scoring {
namespace {

/// F1 = 2 c / (r + g) of the words of the normalised reply (r) and reference (g), c = words in common, counted with
/// their repetitions; the best reference counts.
class TokenF1Scorer : public Scorer {
 public:
  Score score(const ScoredReply& reply) const override {
    const std::string text = judged_reply(*reply.sample, reply.reply_text);
    if (reply.sample->references.empty()) return {std::nullopt, text, "no references"};
    const std::vector<std::string> words = sorted_words(text);
    double best = 0;
    for (const std::string& reference : reply.sample->references)
      best = std::max(best, f1(words, sorted_words(reference)));
    return {best, text, fmt::format("{} words in the reply", words.size())};
  }

 private:
  static std::vector<std::string> sorted_words(std::string_view text) {
    const std::string normal = normalize_answer(text);
    std::vector<std::string> words;
    if (!normal.empty()) words = split(normal, ' ');
    std::sort(words.begin(), words.end());
    return words;
  }

  static double f1(const std::vector<std::string>& given, const std::vector<std::string>& wanted) {
    if (given.empty() || wanted.empty()) return given.empty() && wanted.empty() ? 1 : 0;
    std::vector<std::string> common;
    std::set_intersection(given.begin(), given.end(), wanted.begin(), wanted.end(), std::back_inserter(common));
    return 2.0 * static_cast<double>(common.size()) / static_cast<double>(given.size() + wanted.size());
  }
};

std::unique_ptr<Scorer> make_token_f1_scorer() {
  return std::make_unique<TokenF1Scorer>();
}

}  // namespace

ScorerEntry entries::token_f1_entry() {
  return {"token_f1",           1,    "Word F1 of the reply against the best reference.",
          ScoreUnit::kFraction, true, false,
          &make_token_f1_scorer};
}

}  // namespace fathom::scoring
