#include "harness/analysis/effective_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "harness/core/error.h"
#include "harness/core/stats.h"
#include "harness/core/text_util.h"

namespace fathom::analysis {
namespace {

/// Means are sums of floating-point numbers: 85.6 may come out as 85.60000000000001. Scores that equal the threshold up
/// to this many points are equal to it.
constexpr double kRoundingPoints = 1e-9;
/// A base score not this many points above blind chance says nothing (specification 4.1).
constexpr double kBaseAboveChancePoints = 10;

bool passes(double score, double threshold, PassRule rule) {
  return rule == PassRule::kGreater ? score > threshold + kRoundingPoints : score >= threshold - kRoundingPoints;
}

/// Scores of one task by sample, for all lengths that count: [sample][length] sums and numbers of values.
struct TaskTable {
  std::size_t n_samples = 0;
  std::vector<double> sums;    // [n_samples * n_lengths]
  std::vector<double> counts;  // [n_samples * n_lengths]
};

/// What the bootstrap works on: the lengths that count, shortest first, and which of them are scored.
struct ScoreTable {
  std::vector<std::int64_t> lengths;
  std::vector<bool> scored;
  std::vector<TaskTable> tasks;
  std::vector<std::string> notes;
  std::map<std::int64_t, std::set<std::string>> why_unscored;  // by length, each reason once
};

std::string gap_note(std::int64_t length_tokens) {
  return fmt::format("gap at {}", length_tokens);
}

/// Notes on gaps say why there is no score: "gap at 512 (vt: no results)".
void explain_gaps(const ScoreTable& table, std::vector<std::string>& notes) {
  for (const auto& [length, reasons] : table.why_unscored) {
    const auto note = std::find(notes.begin(), notes.end(), gap_note(length));
    if (note == notes.end()) continue;
    *note += " (" + join(std::vector<std::string>(reasons.begin(), reasons.end()), "; ") + ")";
  }
}

bool has_values(const LengthScores& scores) {
  return std::any_of(scores.by_sample.begin(), scores.by_sample.end(),
                     [](const auto& values) { return !values.empty(); });
}

/// Lengths of every task, shortest first; a length that some task does not have is left out with a note.
ScoreTable choose_lengths(const std::vector<std::vector<LengthScores>>& tasks) {
  std::map<std::int64_t, std::size_t> n_tasks_with;
  std::set<std::int64_t> unscored;
  ScoreTable table;
  for (const auto& task : tasks) {
    for (const LengthScores& scores : task) {
      ++n_tasks_with[scores.length_tokens];
      if (scores.scored && has_values(scores)) continue;
      unscored.insert(scores.length_tokens);
      if (!scores.why_unscored.empty()) table.why_unscored[scores.length_tokens].insert(scores.why_unscored);
    }
  }
  for (const auto& [length, n_with] : n_tasks_with) {
    if (n_with < tasks.size()) {
      table.notes.push_back(fmt::format("{} left out: not every task can be built there", length));
      continue;
    }
    FATHOM_CHECK(n_with == tasks.size(), "a task has a length twice");
    table.lengths.push_back(length);
    table.scored.push_back(unscored.count(length) == 0);
  }
  return table;
}

ScoreTable make_score_table(const std::vector<std::vector<LengthScores>>& tasks) {
  ScoreTable table = choose_lengths(tasks);
  const std::size_t n_lengths = table.lengths.size();
  for (const auto& task : tasks) {
    TaskTable sums;
    for (const LengthScores& scores : task) sums.n_samples = std::max(sums.n_samples, scores.by_sample.size());
    sums.sums.assign(sums.n_samples * n_lengths, 0.0);
    sums.counts.assign(sums.n_samples * n_lengths, 0.0);
    for (const LengthScores& scores : task) {
      const auto found = std::find(table.lengths.begin(), table.lengths.end(), scores.length_tokens);
      if (found == table.lengths.end()) continue;
      const auto column = static_cast<std::size_t>(found - table.lengths.begin());
      for (std::size_t i = 0; i < scores.by_sample.size(); ++i) {
        for (const double value : scores.by_sample[i]) {
          sums.sums[i * n_lengths + column] += value;
          sums.counts[i * n_lengths + column] += 1;
        }
      }
    }
    table.tasks.push_back(std::move(sums));
  }
  return table;
}

/// Mean of the tasks' means per length, in percent. `pick(task, k)` names the k-th sample of a task that counts.
/// A length whose drawn samples hold no value (some samples of a task failed, and only those were drawn) keeps
/// `fallback`.
template <typename Pick>
std::vector<double> scores_of(const ScoreTable& table, const std::vector<double>& fallback, Pick&& pick) {
  const std::size_t n_lengths = table.lengths.size();
  std::vector<double> total(n_lengths, 0.0);
  std::vector<double> sums(n_lengths);
  std::vector<double> counts(n_lengths);
  for (std::size_t t = 0; t < table.tasks.size(); ++t) {
    const TaskTable& task = table.tasks[t];
    std::fill(sums.begin(), sums.end(), 0.0);
    std::fill(counts.begin(), counts.end(), 0.0);
    for (std::size_t k = 0; k < task.n_samples; ++k) {
      const std::size_t row = pick(t, k) * n_lengths;
      for (std::size_t l = 0; l < n_lengths; ++l) {
        sums[l] += task.sums[row + l];
        counts[l] += task.counts[row + l];
      }
    }
    for (std::size_t l = 0; l < n_lengths; ++l) {
      total[l] += counts[l] > 0 ? sums[l] / counts[l] : std::nan("");
    }
  }
  for (std::size_t l = 0; l < n_lengths; ++l) {
    total[l] *= 100.0 / static_cast<double>(table.tasks.size());
    if (std::isnan(total[l])) total[l] = fallback.empty() ? 0.0 : fallback[l];
  }
  return total;
}

BothRules apply_rules(const ScoreTable& table, const std::vector<double>& scores, const RuleSettings& settings) {
  std::vector<LengthPoint> points;
  for (std::size_t l = 0; l < table.lengths.size(); ++l) {
    points.push_back({table.lengths[l], table.scored[l] ? std::optional<double>(scores[l]) : std::nullopt});
  }
  return effective_by_both_rules(points, settings);
}

/// Place on the ordered grid: 0 = left of the first length (or nothing could be said), l + 1 = length number l.
std::size_t grid_place(const ScoreTable& table, const EffectiveValue& value) {
  if (!value.tokens) return 0;
  const auto found = std::lower_bound(table.lengths.begin(), table.lengths.end(), *value.tokens);
  return static_cast<std::size_t>(found - table.lengths.begin()) + 1;
}

/// The effective value that stands at a place of the grid.
EffectiveValue value_at(const ScoreTable& table, std::size_t place) {
  EffectiveValue value;
  value.first_tested = table.lengths.front();
  if (place == 0) {
    value.kind = Censoring::kLeft;
    return value;
  }
  value.tokens = table.lengths[place - 1];
  value.kind = place == table.lengths.size() ? Censoring::kRight : Censoring::kExact;
  if (place < table.lengths.size()) value.next_tested = table.lengths[place];
  return value;
}

/// Smallest place with at least this share of the replicates at or below it.
std::size_t place_quantile(const std::vector<std::int64_t>& replicates_at, double share) {
  std::int64_t total = 0;
  for (const std::int64_t n : replicates_at) total += n;
  std::int64_t seen = 0;
  for (std::size_t place = 0; place < replicates_at.size(); ++place) {
    seen += replicates_at[place];
    if (static_cast<double>(seen) >= share * static_cast<double>(total)) return place;
  }
  return replicates_at.size() - 1;
}

void add_bootstrap(const ScoreTable& table, const std::vector<double>& scores, const RuleSettings& settings,
                   const RngKey& key, EffectiveContext& out) {
  const std::size_t n_lengths = scores.size();
  const std::size_t n_places = n_lengths + 1;
  std::vector<std::int64_t> absolute_at(n_places, 0);
  std::vector<std::int64_t> relative_at(n_places, 0);
  std::vector<std::vector<double>> drawn_at(n_lengths, std::vector<double>());
  std::vector<RngStream> streams;
  for (std::size_t t = 0; t < table.tasks.size(); ++t) streams.emplace_back(key.child(static_cast<std::int64_t>(t)));
  for (int b = 0; b < settings.resamples; ++b) {
    const std::vector<double> drawn = scores_of(table, scores, [&](std::size_t t, std::size_t) {
      return static_cast<std::size_t>(streams[t].uniform_index(table.tasks[t].n_samples));
    });
    for (std::size_t l = 0; l < n_lengths; ++l) drawn_at[l].push_back(drawn[l]);
    const BothRules rules = apply_rules(table, drawn, settings);
    ++absolute_at[grid_place(table, rules.absolute)];
    ++relative_at[grid_place(table, rules.relative)];
  }
  // Of the task with the fewest: a mean over tasks is as sure as its least sure part at most.
  std::int64_t n_samples = INT64_MAX;
  for (const TaskTable& task : table.tasks) n_samples = std::min(n_samples, static_cast<std::int64_t>(task.n_samples));
  for (LengthScore& point : out.curve) {
    const auto found = std::lower_bound(table.lengths.begin(), table.lengths.end(), point.length_tokens);
    std::vector<double>& drawn = drawn_at[static_cast<std::size_t>(found - table.lengths.begin())];
    const double tail = n_samples < 2 ? 0.025 : expanded_tail(n_samples);
    point.low = quantile(drawn, tail);
    point.high = quantile(std::move(drawn), 1 - tail);
  }
  if (out.absolute.kind != Censoring::kNone) {
    out.absolute_low = value_at(table, place_quantile(absolute_at, 0.025));
    out.absolute_high = value_at(table, place_quantile(absolute_at, 0.975));
    std::int64_t at_least = settings.resamples;
    for (std::size_t l = 0; l < table.lengths.size(); ++l) {
      at_least -= absolute_at[l];
      out.probability_at_least.push_back(static_cast<double>(at_least) / settings.resamples);
    }
  }
  if (out.relative.kind != Censoring::kNone) {
    out.relative_low = value_at(table, place_quantile(relative_at, 0.025));
    out.relative_high = value_at(table, place_quantile(relative_at, 0.975));
  }
}

/// Specification 4.3; nothing if a length is unscored.
void add_weighted_means(const ScoreTable& table, const std::vector<double>& scores, EffectiveContext& out) {
  if (table.lengths.empty() || std::find(table.scored.begin(), table.scored.end(), false) != table.scored.end()) return;
  const WeightedMeans means = weighted_means(scores);
  out.average = means.average;
  out.weighted_increasing = means.increasing;
  out.weighted_decreasing = means.decreasing;
}

}  // namespace

EffectiveValue effective_context(std::vector<LengthPoint> points, double threshold, PassRule rule) {
  std::sort(points.begin(), points.end(),
            [](const LengthPoint& a, const LengthPoint& b) { return a.length_tokens < b.length_tokens; });
  for (std::size_t i = 1; i < points.size(); ++i) {
    if (points[i].length_tokens == points[i - 1].length_tokens) {
      throw ConfigError(fmt::format("effective context: length {} appears twice; each length may be given once",
                                    points[i].length_tokens));
    }
  }
  EffectiveValue out;
  if (points.empty()) return out;
  out.first_tested = points.front().length_tokens;

  bool open = true;
  bool all_pass = true;
  bool failed = false;
  bool passed_after_failure = false;
  std::optional<std::int64_t> value;
  for (const LengthPoint& point : points) {
    if (!point.score) {
      open = false;
      all_pass = false;
      out.notes.push_back(gap_note(point.length_tokens));
      continue;
    }
    if (passes(*point.score, threshold, rule)) {
      out.plain_maximum = point.length_tokens;
      if (open) value = point.length_tokens;
      passed_after_failure = passed_after_failure || failed;
    } else {
      open = false;
      failed = true;
      all_pass = false;
    }
  }
  // Covers the case without any scored point too.
  if (!points.front().score) return out;
  if (passed_after_failure) out.notes.emplace_back("not monotone");
  if (!value) {
    out.kind = Censoring::kLeft;
    return out;
  }
  out.kind = all_pass ? Censoring::kRight : Censoring::kExact;
  out.tokens = value;
  for (const LengthPoint& point : points) {
    if (!out.next_tested && point.score && point.length_tokens > *value) out.next_tested = point.length_tokens;
  }
  return out;
}

BothRules effective_by_both_rules(const std::vector<LengthPoint>& points, const RuleSettings& settings) {
  BothRules out;
  out.absolute = effective_context(points, settings.absolute_threshold, PassRule::kGreater);
  for (const LengthPoint& point : points) {
    const bool is_base = std::find(settings.base_lengths.begin(), settings.base_lengths.end(), point.length_tokens) !=
                         settings.base_lengths.end();
    if (is_base && point.score) out.base_score = std::max(out.base_score.value_or(*point.score), *point.score);
  }
  if (!out.base_score) {
    out.relative.notes.emplace_back("no base length is scored");
  } else if (*out.base_score <= 100 * settings.blind_guess + kBaseAboveChancePoints + kRoundingPoints) {
    out.relative.notes.emplace_back("the base score is no better than chance");
  } else {
    out.relative = effective_context(points, settings.relative_share * *out.base_score, PassRule::kAtLeast);
  }
  return out;
}

std::string format_effective(const EffectiveValue& value) {
  switch (value.kind) {
    case Censoring::kExact:
      return std::to_string(value.tokens.value());
    case Censoring::kRight:
      return ">=" + std::to_string(value.tokens.value());
    case Censoring::kLeft:
      return "<" + std::to_string(value.first_tested.value());
    case Censoring::kNone:
      return "–";
  }
  throw InvariantError("unknown Censoring");
}

WeightedMeans weighted_means(const std::vector<double>& scores) {
  FATHOM_CHECK(!scores.empty(), "weighted_means needs a score");
  const auto n = static_cast<double>(scores.size());
  WeightedMeans out;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const auto rank = static_cast<double>(i + 1);
    out.average += scores[i] / n;
    out.increasing += rank * scores[i] / (n * (n + 1) / 2);
    out.decreasing += (n + 1 - rank) * scores[i] / (n * (n + 1) / 2);
  }
  return out;
}

EffectiveContext estimate_effective_context(const std::vector<std::vector<LengthScores>>& tasks,
                                            const RuleSettings& settings, const RngKey& key) {
  EffectiveContext out;
  if (tasks.empty()) return out;
  const ScoreTable table = make_score_table(tasks);
  const std::vector<double> scores = scores_of(table, {}, [](std::size_t, std::size_t k) { return k; });
  const BothRules rules = apply_rules(table, scores, settings);
  out.absolute = rules.absolute;
  out.relative = rules.relative;
  out.base_score = rules.base_score;
  for (EffectiveValue* value : {&out.absolute, &out.relative}) {
    explain_gaps(table, value->notes);
    value->notes.insert(value->notes.end(), table.notes.begin(), table.notes.end());
  }
  add_weighted_means(table, scores, out);
  for (std::size_t l = 0; l < table.lengths.size(); ++l) {
    const bool has_score = std::all_of(table.tasks.begin(), table.tasks.end(), [&](const TaskTable& task) {
      for (std::size_t i = 0; i < task.n_samples; ++i) {
        if (task.counts[i * table.lengths.size() + l] > 0) return true;
      }
      return false;
    });
    if (has_score) out.curve.push_back({table.lengths[l], scores[l], std::nullopt, std::nullopt});
  }
  if (!out.curve.empty() && settings.resamples > 0) add_bootstrap(table, scores, settings, key, out);
  return out;
}

}  // namespace fathom::analysis
