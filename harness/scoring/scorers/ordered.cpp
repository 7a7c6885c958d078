#include <fmt/format.h>

#include <algorithm>

#include "harness/core/text_util.h"
#include "harness/scoring/matching.h"
#include "harness/scoring/scorer.h"

namespace fathom::scoring {
namespace {

/// Share of positions i at which the i-th value parsed from the reply is reference i.
class OrderedScorer : public Scorer {
 public:
  Score score(const ScoredReply& reply) const override {
    const auto values = parse_sample_values(*reply.sample, judged_reply(*reply.sample, reply.reply_text));
    if (!values) return {std::nullopt, {}, "the references have no form to parse"};
    const std::vector<std::string> references = folded_references(*reply.sample);
    std::size_t hits = 0;
    for (std::size_t i = 0; i < std::min(values->size(), references.size()); ++i)
      hits += (*values)[i] == references[i] ? 1 : 0;
    return {static_cast<double>(hits) / static_cast<double>(references.size()), join(*values, ", "),
            fmt::format("{} of {} in their place", hits, references.size())};
  }
};

std::unique_ptr<Scorer> make_ordered_scorer() {
  return std::make_unique<OrderedScorer>();
}

}  // namespace

ScorerEntry entries::ordered_entry() {
  return {"ordered",
          1,
          "Share of references that stand in their place in the reply.",
          ScoreUnit::kFraction,
          true,
          false,
          &make_ordered_scorer};
}

}  // namespace fathom::scoring
