#include "harness/analysis/imported_summary.h"

#include <algorithm>
#include <map>
#include <set>

#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/core/types.h"

namespace fathom::analysis {
namespace {

const std::set<std::string>& ruler_tasks() {
  static const std::set<std::string> kTasks = {"niah_single_1",
                                               "niah_single_2",
                                               "niah_single_3",
                                               "niah_multikey_1",
                                               "niah_multikey_2",
                                               "niah_multikey_3",
                                               "niah_multivalue",
                                               "niah_multiquery",
                                               "vt",
                                               "cwe",
                                               "fwe",
                                               "qa_1",
                                               "qa_2"};
  return kTasks;
}

/// The tasks whose mean is the row's curve.
std::set<std::string> tasks_of_mean(const store::ImportedRow& row) {
  std::set<std::string> present;
  for (const store::ImportedScore& score : row.scores) present.insert(score.task);
  if (present.count("") > 0) return {""};
  const bool any_of_ruler = std::any_of(present.begin(), present.end(),
                                        [](const std::string& task) { return ruler_tasks().count(task) > 0; });
  return any_of_ruler ? ruler_tasks() : present;
}

std::vector<LengthPoint> curve_of(const store::ImportedRow& row) {
  const std::set<std::string> tasks = tasks_of_mean(row);
  std::map<std::int64_t, std::map<std::string, double>> by_length;
  for (const store::ImportedScore& score : row.scores) {
    if (tasks.count(score.task) > 0) by_length[score.length_tokens][score.task] = score.percent;
  }
  std::vector<LengthPoint> curve;
  for (const auto& [length, scores] : by_length) {
    LengthPoint point{length, std::nullopt};
    if (scores.size() == tasks.size()) {
      double sum = 0;
      for (const auto& [task, percent] : scores) sum += percent;
      point.score = sum / static_cast<double>(scores.size());
    }
    curve.push_back(point);
  }
  return curve;
}

bool says_the_same(const EffectiveValue& listed, const EffectiveValue& value) {
  if (listed.kind != value.kind) return false;
  return listed.kind == Censoring::kLeft ? listed.first_tested == value.first_tested : listed.tokens == value.tokens;
}

ListedAgreement agreement_of(const ImportedResult& result) {
  const auto listed = parse_listed_effective(result.row.listed_effective);
  if (!listed) return ListedAgreement::kNothingListed;
  const PassRule other = result.row.strict ? PassRule::kAtLeast : PassRule::kGreater;
  const EffectiveValue by_other = effective_context(result.curve, result.row.threshold_percent, other);
  if (!says_the_same(result.effective, by_other) &&
      (says_the_same(*listed, result.effective) || says_the_same(*listed, by_other))) {
    return ListedAgreement::kBoundary;
  }
  return says_the_same(*listed, result.effective) ? ListedAgreement::kAgrees : ListedAgreement::kContradicts;
}

std::optional<WeightedMeans> means_of(const std::vector<LengthPoint>& curve, std::size_t n_lengths) {
  std::vector<double> scores;
  for (const LengthPoint& point : curve) {
    if (point.score) scores.push_back(*point.score);
  }
  if (scores.size() != n_lengths || scores.empty()) return std::nullopt;
  return weighted_means(scores);
}

}  // namespace

std::string_view to_string(ListedAgreement agreement) {
  switch (agreement) {
    case ListedAgreement::kNothingListed:
      return "nothing_listed";
    case ListedAgreement::kAgrees:
      return "agrees";
    case ListedAgreement::kBoundary:
      return "boundary";
    case ListedAgreement::kContradicts:
      return "contradicts";
  }
  throw InvariantError("unknown ListedAgreement");
}

std::optional<EffectiveValue> parse_listed_effective(const std::string& text) {
  if (text.empty()) return std::nullopt;
  EffectiveValue value;
  value.kind = text.front() == '>' ? Censoring::kRight : text.front() == '<' ? Censoring::kLeft : Censoring::kExact;
  std::string_view number = text;
  if (value.kind != Censoring::kExact) number.remove_prefix(1);
  const bool thousands = ends_with(number, "K");
  if (thousands) number.remove_suffix(1);
  const auto count = parse_int(number);
  if (!count || *count < 1) return std::nullopt;
  const std::int64_t tokens = thousands ? *count * kTokensPerK : *count;
  (value.kind == Censoring::kLeft ? value.first_tested : value.tokens) = tokens;
  return value;
}

ImportedSummary summarise_import(const store::ImportedSource& source) {
  ImportedSummary summary;
  summary.source = source;
  summary.source.rows.clear();
  std::set<std::int64_t> lengths;
  for (const store::ImportedRow& row : source.rows) {
    ImportedResult result;
    result.row = row;
    result.curve = curve_of(row);
    result.effective =
        effective_context(result.curve, row.threshold_percent, row.strict ? PassRule::kGreater : PassRule::kAtLeast);
    result.agreement = agreement_of(result);
    summary.n_contradictions += result.agreement == ListedAgreement::kContradicts ? 1 : 0;
    for (const LengthPoint& point : result.curve) lengths.insert(point.length_tokens);
    summary.results.push_back(std::move(result));
  }
  summary.lengths.assign(lengths.begin(), lengths.end());
  for (ImportedResult& result : summary.results) result.means = means_of(result.curve, lengths.size());
  return summary;
}

}  // namespace fathom::analysis
