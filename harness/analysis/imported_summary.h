#pragma once
// Effective context of imported results by the rule of their source, and whether it agrees with what the source lists.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/analysis/effective_context.h"
#include "harness/store/imported.h"

namespace fathom::analysis {

/// How the source's own effective length compares with the rule on the row's own scores.
enum class ListedAgreement {
  kNothingListed,
  kAgrees,
  kBoundary,    ///< a score equals the threshold: ">" and ">=" give different lengths, and one of them is listed
  kContradicts  ///< neither gives the listed length
};
std::string_view to_string(ListedAgreement agreement);  // "nothing_listed", "agrees", "boundary", "contradicts"

struct ImportedResult {
  store::ImportedRow row;
  std::vector<LengthPoint> curve;  ///< percent by length, shortest first; nothing where a task of the mean is missing
  EffectiveValue effective;        ///< by the row's threshold
  ListedAgreement agreement = ListedAgreement::kNothingListed;
  std::optional<WeightedMeans> means;  ///< where every length of the source has a score
};

struct ImportedSummary {
  store::ImportedSource source;  ///< without its rows: they are in `results`
  std::vector<std::int64_t> lengths;
  std::vector<ImportedResult> results;
  std::int64_t n_contradictions = 0;
};

/// The length listed as "64K", ">128K" or "<4K"; nothing for other texts. `>` is right-censored, `<` left-censored.
std::optional<EffectiveValue> parse_listed_effective(const std::string& text);

/// A row with scores by task has as its curve the mean of RULER's 13 tasks, unscored where one is missing (tasks
/// specification 4.1); with other tasks alone, the mean over the row's tasks.
ImportedSummary summarise_import(const store::ImportedSource& source);

}  // namespace fathom::analysis
