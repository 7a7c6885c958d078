#include "harness/analysis/grouped_scores.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::analysis {
namespace {

/// A length with more failed samples than this share is unscored (specification 4.1).
constexpr double kMaxFailedShare = 0.01;

using FailureCounts = std::map<eval::SampleStatus, std::int64_t>;

std::string_view status_meaning(eval::SampleStatus status) {
  switch (status) {
    case eval::SampleStatus::kOk:
      return "no score";
    case eval::SampleStatus::kTooShort:
      return "the length is too short";
    case eval::SampleStatus::kTooLong:
      return "the sample is longer than its length";
    case eval::SampleStatus::kOutOfMemory:
      return "out of memory";
    case eval::SampleStatus::kNoPosition:
      return "the model's position table ends before";
    case eval::SampleStatus::kEngineError:
      return "the engine failed";
    case eval::SampleStatus::kCancelled:
      return "cancelled";
  }
  throw InvariantError("unknown SampleStatus");
}

/// One reason where all rows share it, else how many rows have which.
std::string failure_reason(const FailureCounts& failures, std::int64_t n_rows) {
  if (failures.size() == 1 && failures.begin()->second == n_rows) return unscored_reason(failures.begin()->first);
  std::vector<std::string> parts;
  for (const auto& [status, n] : failures) {
    parts.push_back(fmt::format("{} of {} {}", n, n_rows,
                                status == eval::SampleStatus::kOk ? "without a score" : eval::to_string(status)));
  }
  return join(parts, ", ");
}

}  // namespace

bool is_scored(const store::OutcomeRow& row) {
  return row.status == eval::SampleStatus::kOk && row.value.has_value();
}

std::string unscored_reason(eval::SampleStatus status) {
  if (status == eval::SampleStatus::kOk) return std::string(status_meaning(status));
  return fmt::format("{}: {}", eval::to_string(status), status_meaning(status));
}

GroupedScores group_scores(const std::vector<store::OutcomeRow>& outcomes, OutcomeRange range) {
  std::map<std::int64_t, std::size_t> place_of_index;
  for (std::size_t i = range.first; i < range.second; ++i) place_of_index.emplace(outcomes[i].index, 0);
  std::size_t n_places = 0;
  for (auto& [index, place] : place_of_index) place = n_places++;

  GroupedScores out;
  std::map<std::int64_t, FailureCounts> failures;
  for (std::size_t i = range.first; i < range.second; ++i) {
    const store::OutcomeRow& row = outcomes[i];
    if (out.lengths.empty() || out.lengths.back().length_tokens != row.length_tokens) {
      out.lengths.push_back({row.length_tokens, std::vector<std::vector<double>>(n_places), true});
      out.n_failed[row.length_tokens] = 0;
    }
    if (is_scored(row)) {
      out.lengths.back().by_sample[place_of_index.at(row.index)].push_back(*row.value);
      ++out.n_values;
    } else {
      ++failures[row.length_tokens][row.status];
      ++out.n_failed[row.length_tokens];
      ++out.n_all_failed;
    }
  }
  for (LengthScores& scores : out.lengths) {
    std::int64_t n_rows = out.n_failed.at(scores.length_tokens);
    const auto n_failed = static_cast<double>(n_rows);
    for (const auto& values : scores.by_sample) n_rows += static_cast<std::int64_t>(values.size());
    scores.scored = n_failed <= kMaxFailedShare * static_cast<double>(n_rows);
    if (!scores.scored) scores.why_unscored = failure_reason(failures[scores.length_tokens], n_rows);
  }
  return out;
}

void name_unscored_tasks(const std::vector<std::string>& labels, std::vector<std::vector<LengthScores>>& tasks) {
  std::map<std::int64_t, std::vector<std::pair<std::size_t, LengthScores*>>> unscored;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    for (LengthScores& scores : tasks[t]) {
      if (!scores.scored) unscored[scores.length_tokens].emplace_back(t, &scores);
    }
  }
  for (auto& [length, places] : unscored) {
    const std::string& first = places.front().second->why_unscored;
    const bool all_alike =
        places.size() == tasks.size() &&
        std::all_of(places.begin(), places.end(), [&](const auto& p) { return p.second->why_unscored == first; });
    if (all_alike) continue;
    for (auto& [t, scores] : places) scores->why_unscored = labels[t] + ": " + scores->why_unscored;
  }
}

}  // namespace fathom::analysis
