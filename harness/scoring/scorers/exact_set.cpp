#include <fmt/format.h>

#include <set>

#include "harness/core/text_util.h"
#include "harness/scoring/matching.h"
#include "harness/scoring/scorer.h"

namespace fathom::scoring {
namespace {

/// 1 if the set of values parsed from the reply equals the set of references.
class ExactSetScorer : public Scorer {
 public:
  Score score(const ScoredReply& reply) const override {
    const auto values = parse_sample_values(*reply.sample, judged_reply(*reply.sample, reply.reply_text));
    if (!values) return {std::nullopt, {}, "the references have no form to parse"};
    const std::vector<std::string> references = folded_references(*reply.sample);
    const std::set<std::string> given(values->begin(), values->end());
    const std::set<std::string> wanted(references.begin(), references.end());
    return {given == wanted ? 1.0 : 0.0, join(*values, ", "),
            fmt::format("{} different values, {} references", given.size(), wanted.size())};
  }
};

std::unique_ptr<Scorer> make_exact_set_scorer() {
  return std::make_unique<ExactSetScorer>();
}

}  // namespace

ScorerEntry entries::exact_set_entry() {
  return {"exact_set",           1,    "1 if the values in the reply are exactly the references, in any order.",
          ScoreUnit::kFraction,  true, false,
          &make_exact_set_scorer};
}

}  // namespace fathom::scoring
