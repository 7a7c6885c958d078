#include <fmt/format.h>

#include <set>

#include "harness/core/text_util.h"
#include "harness/scoring/matching.h"
#include "harness/scoring/scorer.h"

namespace fathom::scoring {
namespace {

/// Number of different values of the right form in the reply that are no reference.
class ExtraScorer : public Scorer {
 public:
  Score score(const ScoredReply& reply) const override {
    const auto values = parse_sample_values(*reply.sample, judged_reply(*reply.sample, reply.reply_text));
    if (!values) return {std::nullopt, {}, "the references have no form to parse"};
    const std::vector<std::string> references = folded_references(*reply.sample);
    std::set<std::string> wrong(values->begin(), values->end());
    for (const std::string& reference : references) wrong.erase(reference);
    return {static_cast<double>(wrong.size()), join({wrong.begin(), wrong.end()}, ", "),
            fmt::format("{} wrong values", wrong.size())};
  }
};

std::unique_ptr<Scorer> make_extra_scorer() {
  return std::make_unique<ExtraScorer>();
}

}  // namespace

ScorerEntry entries::extra_entry() {
  return {"extra",           1, "Values in the reply that are no reference.", ScoreUnit::kCount, false, false,
          &make_extra_scorer};
}

}  // namespace fathom::scoring
