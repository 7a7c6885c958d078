#include <fmt/format.h>

#include <algorithm>

#include "harness/core/text_util.h"
#include "harness/scoring/matching.h"
#include "harness/scoring/scorer.h"

namespace fathom::scoring {
namespace {

/// Share of the reference's words that stand at the same place in the reply; the best reference counts. A reply that is
/// longer is divided by its own length.
class TokenAccuracyScorer : public Scorer {
 public:
  Score score(const ScoredReply& reply) const override {
    const std::string text = judged_reply(*reply.sample, reply.reply_text);
    if (reply.sample->references.empty()) return {std::nullopt, text, "no references"};
    const std::vector<std::string> given = words(text);
    double best = 0;
    for (const std::string& reference : reply.sample->references)
      best = std::max(best, accuracy(given, words(reference)));
    return {best, text, fmt::format("{} words in the reply", given.size())};
  }

 private:
  static std::vector<std::string> words(std::string_view text) {
    std::vector<std::string> out;
    for (std::string& word : split(replace_all(fold_case(text), "\n", " "), ' ')) {
      if (!word.empty()) out.push_back(std::move(word));
    }
    return out;
  }

  static double accuracy(const std::vector<std::string>& given, const std::vector<std::string>& wanted) {
    std::size_t hits = 0;
    for (std::size_t i = 0; i < std::min(given.size(), wanted.size()); ++i) hits += given[i] == wanted[i] ? 1 : 0;
    const std::size_t n = std::max(given.size(), wanted.size());
    return n == 0 ? 1.0 : static_cast<double>(hits) / static_cast<double>(n);
  }
};

std::unique_ptr<Scorer> make_token_accuracy_scorer() {
  return std::make_unique<TokenAccuracyScorer>();
}

}  // namespace

ScorerEntry entries::token_accuracy_entry() {
  return {"token_accuracy",           1,    "Share of the right answer's words that stand in their place.",
          ScoreUnit::kFraction,       true, false,
          &make_token_accuracy_scorer};
}

}  // namespace fathom::scoring
