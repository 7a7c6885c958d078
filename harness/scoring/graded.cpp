#include "harness/scoring/graded.h"

#include <algorithm>
#include <cmath>

namespace fathom::scoring {
namespace {

// Scores that differ by less are equal: batches of other sizes round differently.
constexpr double kTieBits = 1e-9;

}  // namespace

double total_bits(const lm::ContinuationScore& score) {
  double sum = 0;
  for (const double logprob : score.logprobs) sum += logprob;
  return sum / std::log(2.0);
}

std::optional<std::vector<lm::ContinuationScore>> graded_candidates(const ScoredReply& reply) {
  if (reply.candidates.empty()) return std::nullopt;
  for (const lm::ContinuationScore& candidate : reply.candidates) {
    if (candidate.logprobs.empty()) return std::nullopt;
  }
  return reply.candidates;
}

double n_references(const ScoredReply& reply) {
  const bool one = reply.sample == nullptr || reply.sample->metric != task::TaskMetric::kAll;
  const std::size_t n = one ? 1 : reply.sample->references.size();
  return static_cast<double>(std::max<std::size_t>(1, n));
}

double candidate_rank(const std::vector<lm::ContinuationScore>& candidates) {
  const std::size_t n_tokens = candidates.front().logprobs.size();
  const bool per_token = std::any_of(candidates.begin(), candidates.end(),
                                     [n_tokens](const auto& each) { return each.logprobs.size() != n_tokens; });
  const auto value = [per_token](const lm::ContinuationScore& each) {
    const double bits = total_bits(each);
    return per_token ? bits / static_cast<double>(each.logprobs.size()) : bits;
  };
  const double gold = value(candidates.front());
  double rank = 1;
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    const double other = value(candidates[i]);
    if (std::abs(other - gold) <= kTieBits) {
      rank += 0.5;
    } else if (other > gold) {
      rank += 1;
    }
  }
  return rank;
}

}  // namespace fathom::scoring
