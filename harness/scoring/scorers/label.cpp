#include <fmt/format.h>

#include <algorithm>

#include "harness/core/text_util.h"
#include "harness/scoring/matching.h"
#include "harness/scoring/scorer.h"
#include "harness/text/sentence_splitter.h"

namespace fathom::scoring {
namespace {

/// 1 if the first label of the sample's closed set in the reply's first sentence is the right one; not scored where the
/// task has no such set.
class LabelScorer : public Scorer {
 public:
  Score score(const ScoredReply& reply) const override {
    if (reply.sample->labels.empty()) return {std::nullopt, {}, "the task has no closed set of answers"};
    const std::string text = judged_reply(*reply.sample, reply.reply_text);
    const auto sentences = text::split_sentences(text);
    const std::string sentence =
        sentences.empty() ? std::string() : text.substr(sentences[0].begin, sentences[0].end - sentences[0].begin);
    const auto label = first_label(sentence, reply.sample->labels);
    if (!label) return {0.0, sentence, "no label in the first sentence"};
    const auto& references = reply.sample->references;
    const bool right = std::find(references.begin(), references.end(), *label) != references.end();
    return {right ? 1.0 : 0.0, *label, fmt::format("first of {} labels", reply.sample->labels.size())};
  }
};

std::unique_ptr<Scorer> make_label_scorer() {
  return std::make_unique<LabelScorer>();
}

}  // namespace

ScorerEntry entries::label_entry() {
  return {
      "label",           1, "1 if the first label the reply names is the right one.", ScoreUnit::kFraction, true, false,
      &make_label_scorer};
}

}  // namespace fathom::scoring
