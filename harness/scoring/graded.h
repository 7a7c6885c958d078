#pragma once
// Arithmetic of the graded scores (tasks specification 3.2).

#include <cstdint>
#include <optional>
#include <vector>

#include "harness/lm/language_model.h"
#include "harness/scoring/scorer.h"

namespace fathom::scoring {

/// Sum of log2 p over the continuation's tokens, in bits.
double total_bits(const lm::ContinuationScore& score);

/// The teacher-forced candidates of a reply, or nothing: graded scores off, the request failed, or a candidate without
/// tokens.
std::optional<std::vector<lm::ContinuationScore>> graded_candidates(const ScoredReply& reply);

/// Number of references that the answer text names, at least 1: with several, lp is the mean over them, each after the
/// ones before it. Where the references are wordings of one answer it names one.
double n_references(const ScoredReply& reply);

/// 1 + number of candidates that score higher than candidate 0, ties at their mean rank: a uniform model is at (c +
/// 1)/2 of c. Compared per token if token counts differ.
double candidate_rank(const std::vector<lm::ContinuationScore>& candidates);

}  // namespace fathom::scoring
