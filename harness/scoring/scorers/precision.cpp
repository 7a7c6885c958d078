#include <fmt/format.h>

#include <algorithm>

#include "harness/core/text_util.h"
#include "harness/scoring/matching.h"
#include "harness/scoring/scorer.h"

namespace fathom::scoring {
namespace {

/// Hits / values parsed from the reply; not scored where there is no value.
class PrecisionScorer : public Scorer {
 public:
  Score score(const ScoredReply& reply) const override {
    const auto values = parse_sample_values(*reply.sample, judged_reply(*reply.sample, reply.reply_text));
    if (!values) return {std::nullopt, {}, "the references have no form to parse"};
    if (values->empty()) return {std::nullopt, {}, "no value in the reply"};
    const std::vector<std::string> references = folded_references(*reply.sample);
    const auto hits = std::count_if(values->begin(), values->end(), [&references](const std::string& value) {
      return std::find(references.begin(), references.end(), value) != references.end();
    });
    const auto parsed = static_cast<std::int64_t>(values->size());
    return {static_cast<double>(hits) / static_cast<double>(parsed), join(*values, ", "),
            fmt::format("{} of {} values right", hits, parsed)};
  }
};

std::unique_ptr<Scorer> make_precision_scorer() {
  return std::make_unique<PrecisionScorer>();
}

}  // namespace

ScorerEntry entries::precision_entry() {
  return {"precision",           1,    "Share of the values in the reply that are references.",
          ScoreUnit::kFraction,  true, false,
          &make_precision_scorer};
}

}  // namespace fathom::scoring
