#include "harness/analysis/run_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/analysis/beyond_model.h"
#include "harness/analysis/grouped_scores.h"
#include "harness/analysis/kept_summary.h"
#include "harness/config/sweep.h"

namespace fathom::analysis {
namespace {

/// Misses a page can hold.
constexpr std::size_t kMaxMisses = 1500;

std::string summary_task_label(const store::TaskInfo& info) {
  return info.variant == "balanced" ? info.name : info.name + "@" + info.variant;
}

std::vector<TaskLabel> label_tasks(const std::vector<store::TaskInfo>& infos) {
  std::map<std::string, int> n_with_label;
  for (const store::TaskInfo& info : infos) ++n_with_label[summary_task_label(info)];
  std::vector<TaskLabel> out;
  for (const store::TaskInfo& info : infos) {
    std::string label = summary_task_label(info);
    if (n_with_label[label] > 1) label += fmt::format(" v{}", info.version);
    out.push_back({info, label});
  }
  return out;
}

std::vector<std::int64_t> lengths_in(const std::vector<LengthScores>& scores) {
  std::vector<std::int64_t> out;
  out.reserve(scores.size());
  for (const LengthScores& one : scores) out.push_back(one.length_tokens);
  return out;
}

/// What is known about the cells of one variant that were not built: by task label and length.
using UnbuiltLengths = std::map<std::pair<std::string, std::int64_t>, eval::SampleStatus>;

class RunSummariser {
 public:
  RunSummariser(const store::ResultReader& results, const std::string& run, const SummarySettings& settings)
      : results_(results), run_(run), key_("fathom/1|report|bootstrap") {
    summary_.settings = settings;
  }

  RunSummary summarise() {
    summary_.info = results_.run(run_);
    summary_.tasks = label_tasks(results_.tasks(run_));
    choose_mean_tasks();
    outcomes_ = results_.outcomes(run_);
    find_ranges();
    const std::vector<eval::CellRecord> unbuilt = results_.unbuilt_cells(run_);
    std::set<std::int64_t> lengths;
    for (const store::OutcomeRow& row : outcomes_) lengths.insert(row.length_tokens);
    for (const eval::CellRecord& cell : unbuilt) lengths.insert(cell.length_tokens);
    summary_.lengths.assign(lengths.begin(), lengths.end());
    for (std::size_t v = 0; v < summary_.info.variants.size(); ++v) add_variant(v, unbuilt);
    add_misses();
    summary_.costs = results_.costs(run_);
    summary_.guesses = results_.guesses(run_);
    summary_.controls = results_.controls(run_);
    mark_tasks_beyond_model();
    summary_.replies = results_.replies(run_);
    summary_.seeds = seed_groups(summary_.info, outcomes_);
    for (store::ScoreMeanRow& row : results_.score_means(run_)) {
      const bool is_main = row.scorer == summary_.tasks[static_cast<std::size_t>(row.task)].info.metric;
      if (!is_main) summary_.other_scores.push_back(std::move(row));
    }
    add_position_bits();
    return std::move(summary_);
  }

 private:
  void mark_tasks_beyond_model() {
    const double threshold = summary_.settings.absolute_threshold;
    for (std::size_t v = 0; v < summary_.variants.size(); ++v) {
      std::vector<TaskResult>& tasks = summary_.variants[v].tasks;
      for (std::size_t t = 0; t < tasks.size(); ++t) {
        const auto variant = static_cast<std::int32_t>(v);
        const auto task = static_cast<std::int32_t>(t);
        tasks[t].beyond_model = beyond_model(summary_.controls, variant, task, tasks[t].curve, threshold);
        tasks[t].fails_without_control =
            fails_without_control(summary_.controls, variant, task, tasks[t].curve, threshold);
      }
    }
  }

  /// The tasks that report.effective names, where it does not ask for the mean. Else all but those with sizes of their
  /// own, which have no point on the axis of lengths, unless there is nothing else.
  void choose_mean_tasks() {
    if (!summary_.shows_mean()) {
      for (std::size_t t = 0; t < summary_.tasks.size(); ++t) {
        if (!summary_.names_task(t)) continue;
        mean_tasks_.push_back(t);
        summary_.headline_tasks.push_back(summary_.tasks[t].label);
      }
      if (!mean_tasks_.empty()) return;
    }
    for (std::size_t t = 0; t < summary_.tasks.size(); ++t) {
      if (!summary_.tasks[t].info.own_length) mean_tasks_.push_back(t);
    }
    if (!mean_tasks_.empty()) return;
    for (std::size_t t = 0; t < summary_.tasks.size(); ++t) mean_tasks_.push_back(t);
  }

  void add_position_bits() {
    auto& curves = summary_.position_bits;
    for (const store::PositionBitsRow& row : results_.position_bits(run_)) {
      const bool same = !curves.empty() && curves.back().variant == row.variant && curves.back().task == row.task &&
                        curves.back().length_tokens == row.length_tokens;
      if (!same) curves.push_back({row.variant, row.task, row.length_tokens, {}});
      curves.back().bits.add_text(row.bins);
    }
  }

  void find_ranges() {
    fractional_.assign(summary_.tasks.size(), false);
    OutcomeRange* range = nullptr;
    for (std::size_t i = 0; i < outcomes_.size(); ++i) {
      const store::OutcomeRow& row = outcomes_[i];
      // Rows of one variant and task stand together.
      if (i == 0 || row.variant != outcomes_[i - 1].variant || row.task != outcomes_[i - 1].task) {
        range = &ranges_.emplace(std::make_pair(row.variant, row.task), OutcomeRange{i, i}).first->second;
      }
      range->second = i + 1;
      if (row.value && *row.value != 0 && *row.value != 1) fractional_[static_cast<std::size_t>(row.task)] = true;
    }
  }

  void add_variant(std::size_t v, const std::vector<eval::CellRecord>& unbuilt) {
    VariantSummary variant;
    variant.record = summary_.info.variants[v];
    std::vector<GroupedScores> groups;
    for (std::size_t t = 0; t < summary_.tasks.size(); ++t) {
      const auto found = ranges_.find({static_cast<std::int32_t>(v), static_cast<std::int32_t>(t)});
      groups.push_back(found == ranges_.end() ? GroupedScores{} : group_scores(outcomes_, found->second));
    }
    const UnbuiltLengths missing = add_unbuilt(variant, groups, unbuilt);
    for (std::size_t t = 0; t < summary_.tasks.size(); ++t) {
      add_unbuilt_gaps(groups[t], summary_.tasks[t].label, missing);
      const auto found = ranges_.find({static_cast<std::int32_t>(v), static_cast<std::int32_t>(t)});
      const OutcomeRange range = found == ranges_.end() ? OutcomeRange{0, 0} : found->second;
      variant.tasks.push_back(task_result(variant.record, t, groups[t], range));
      summary_.n_values += groups[t].n_values;
      summary_.n_failed += groups[t].n_all_failed;
    }
    add_mean(variant, groups, missing);
    summary_.variants.push_back(std::move(variant));
  }

  /// Keeps the unbuilt cells of this variant; one that a later try has built is no longer missing.
  UnbuiltLengths add_unbuilt(VariantSummary& variant, const std::vector<GroupedScores>& groups,
                             const std::vector<eval::CellRecord>& unbuilt) const {
    std::set<std::pair<std::string, std::int64_t>> built;
    for (std::size_t t = 0; t < groups.size(); ++t) {
      for (const LengthScores& scores : groups[t].lengths) built.emplace(summary_.tasks[t].label, scores.length_tokens);
    }
    UnbuiltLengths missing;
    for (const eval::CellRecord& cell : unbuilt) {
      if (cell.variant != variant.record.name) continue;
      const auto place = std::make_pair(
          summary_task_label({cell.task.name, std::string(task::to_string(cell.task.variant)), 0, "", 0}),
          cell.length_tokens);
      if (built.count(place) > 0 && !cell.depth_bp) continue;
      variant.unbuilt.push_back(cell);
      if (built.count(place) == 0) missing.emplace(place, cell.status);
    }
    return missing;
  }

  /// A length that was asked for and could not be run ends the prefix; one that is too short for the task was never
  /// possible.
  static void add_unbuilt_gaps(GroupedScores& group, const std::string& label, const UnbuiltLengths& missing) {
    for (const auto& [place, status] : missing) {
      if (place.first != label || status == eval::SampleStatus::kTooShort) continue;
      group.lengths.push_back({place.second, {}, false, unscored_reason(status)});
    }
    std::sort(group.lengths.begin(), group.lengths.end(),
              [](const LengthScores& a, const LengthScores& b) { return a.length_tokens < b.length_tokens; });
  }

  RuleSettings rule_settings(const std::vector<std::int64_t>& tested, const eval::VariantRecord& record,
                             double blind_guess) const {
    RuleSettings rules;
    rules.absolute_threshold = summary_.settings.absolute_threshold;
    rules.base_lengths = base_lengths_of(tested, record, summary_.settings.base_lengths);
    rules.blind_guess = blind_guess;
    rules.resamples = summary_.settings.resamples;
    return rules;
  }

  /// Depth cells of one (variant, task); the rows are ordered by length, then depth.
  std::vector<ScorePoint> depth_cells(std::size_t t, OutcomeRange range, const RngKey& key) const {
    std::vector<ScorePoint> cells;
    std::size_t begin = range.first;
    while (begin < range.second) {
      const store::OutcomeRow& first = outcomes_[begin];
      LengthScores scores;
      scores.length_tokens = first.length_tokens;
      std::int64_t n_failed = 0;
      std::size_t end = begin;
      for (; end < range.second && outcomes_[end].length_tokens == first.length_tokens &&
             outcomes_[end].depth_bp == first.depth_bp;
           ++end) {
        if (is_scored(outcomes_[end])) {
          scores.by_sample.push_back({*outcomes_[end].value});
        } else {
          ++n_failed;
        }
      }
      ScorePoint point = score_point(scores.by_sample, nullptr, {fractional_[t], 1});
      if (point.estimator == Estimator::kNone && point.n_values >= kMinBootstrapValues) {
        RuleSettings settings;
        settings.resamples = summary_.settings.resamples;
        const EffectiveContext bootstrap = estimate_effective_context({{scores}}, settings, key);
        point = score_point(scores.by_sample, find_length(bootstrap, first.length_tokens), {fractional_[t], 1});
      }
      point.length_tokens = first.length_tokens;
      point.depth_bp = first.depth_bp;
      point.n_failed = n_failed;
      cells.push_back(point);
      begin = end;
    }
    return cells;
  }

  /// A cell that is the only one of its length is the point of the curve: two bootstraps of the same scores would give
  /// two intervals for one figure.
  static void take_pooled_where_alone(TaskResult& result) {
    for (ScorePoint& cell : result.cells) {
      const auto of_length = [&](const ScorePoint& point) { return point.length_tokens == cell.length_tokens; };
      const auto pooled = std::find_if(result.curve.begin(), result.curve.end(), of_length);
      if (pooled == result.curve.end() || std::count_if(result.cells.begin(), result.cells.end(), of_length) != 1)
        continue;
      const std::optional<std::int32_t> depth_bp = cell.depth_bp;
      cell = *pooled;
      cell.depth_bp = depth_bp;
    }
  }

  TaskResult task_result(const eval::VariantRecord& record, std::size_t t, const GroupedScores& group,
                         OutcomeRange range) const {
    TaskResult result;
    if (group.lengths.empty()) return result;
    const TaskLabel& task = summary_.tasks[t];
    // One key for all variants: their bootstraps draw the same samples, so that equal scores give equal intervals.
    const RngKey key = key_.child(task.label);
    result.effective = estimate_effective_context(
        {group.lengths}, rule_settings(lengths_in(group.lengths), record, task.info.blind_guess), key);
    const CurveFacts facts{fractional_[t], design_effect_of_curve(group.lengths)};
    for (const LengthScores& scores : group.lengths) {
      const auto failed = group.n_failed.find(scores.length_tokens);
      if (failed == group.n_failed.end()) continue;
      ScorePoint point = score_point(scores.by_sample, find_length(result.effective, scores.length_tokens), facts);
      point.length_tokens = scores.length_tokens;
      point.n_failed = failed->second;
      result.curve.push_back(point);
    }
    result.cells = depth_cells(t, range, key.child("cells"));
    take_pooled_where_alone(result);
    result.sweeps_depth = std::any_of(result.cells.begin(), result.cells.end(),
                                      [](const ScorePoint& p) { return p.depth_bp.has_value(); });
    return result;
  }

  void add_mean(VariantSummary& variant, std::vector<GroupedScores>& groups, const UnbuiltLengths& missing) const {
    std::set<std::int64_t> lengths;
    for (const std::size_t t : mean_tasks_) {
      for (const LengthScores& scores : groups[t].lengths) lengths.insert(scores.length_tokens);
    }
    std::vector<std::vector<LengthScores>> tasks;
    std::vector<std::string> labels;
    double blind_guess = 0;
    for (const std::size_t t : mean_tasks_) {
      std::vector<LengthScores> scores = std::move(groups[t].lengths);
      for (const std::int64_t length : lengths) {
        const bool there =
            std::any_of(scores.begin(), scores.end(), [&](const LengthScores& s) { return s.length_tokens == length; });
        const auto place = missing.find({summary_.tasks[t].label, length});
        const bool too_short = place != missing.end() && place->second == eval::SampleStatus::kTooShort;
        if (!there && !too_short) scores.push_back({length, {}, false, "no results"});
      }
      tasks.push_back(std::move(scores));
      labels.push_back(summary_.tasks[t].label);
      blind_guess += summary_.tasks[t].info.blind_guess / static_cast<double>(mean_tasks_.size());
    }
    std::vector<std::int64_t> tested;
    for (const std::int64_t length : lengths) {
      const bool everywhere = std::all_of(tasks.begin(), tasks.end(), [&](const auto& scores) {
        return std::any_of(scores.begin(), scores.end(),
                           [&](const LengthScores& s) { return s.length_tokens == length; });
      });
      if (everywhere) tested.push_back(length);
    }
    name_unscored_tasks(labels, tasks);
    variant.mean =
        estimate_effective_context(tasks, rule_settings(tested, variant.record, blind_guess), key_.child("mean"));
    for (const LengthScore& score : variant.mean.curve) variant.mean_curve.push_back(mean_point(variant, score));
  }

  ScorePoint mean_point(const VariantSummary& variant, const LengthScore& score) const {
    std::vector<ScorePoint> parts;
    for (const std::size_t t : mean_tasks_) {
      for (const ScorePoint& part : variant.tasks[t].curve) {
        if (part.length_tokens == score.length_tokens) parts.push_back(part);
      }
    }
    // The mean over one task is that task, its estimator included.
    if (mean_tasks_.size() == 1) return parts.empty() ? ScorePoint{} : parts.front();
    return mean_score_point(score, parts);
  }

  void add_misses() {
    summary_.misses_per_cell = summary_.settings.max_misses_per_cell;
    summary_.misses = results_.misses(run_, outcomes_, summary_.misses_per_cell);
    while (summary_.misses.size() > kMaxMisses && summary_.misses_per_cell > 1) {
      --summary_.misses_per_cell;
      summary_.misses_thinned = true;
      thin_misses(summary_.misses, summary_.misses_per_cell);
    }
    if (summary_.misses.size() <= kMaxMisses) return;
    // Still too many cells: every k-th of them, so that no variant is left out.
    const std::size_t step = (summary_.misses.size() + kMaxMisses - 1) / kMaxMisses;
    std::vector<store::MissRow> kept;
    for (std::size_t i = 0; i < summary_.misses.size(); i += step) kept.push_back(std::move(summary_.misses[i]));
    summary_.misses = std::move(kept);
  }

  static void thin_misses(std::vector<store::MissRow>& misses, int per_cell) {
    std::vector<store::MissRow> kept;
    int n_in_cell = 0;
    for (store::MissRow& miss : misses) {
      const bool same = !kept.empty() && kept.back().variant == miss.variant && kept.back().task == miss.task &&
                        kept.back().length_tokens == miss.length_tokens && kept.back().depth_bp == miss.depth_bp;
      n_in_cell = same ? n_in_cell + 1 : 1;
      if (n_in_cell <= per_cell) kept.push_back(std::move(miss));
    }
    misses = std::move(kept);
  }

  const store::ResultReader& results_;
  const std::string& run_;
  RngKey key_;
  RunSummary summary_;
  std::vector<store::OutcomeRow> outcomes_;
  std::vector<std::size_t> mean_tasks_;
  std::vector<bool> fractional_;  // by task: some score lies between 0 and 1
  std::map<std::pair<std::int32_t, std::int32_t>, OutcomeRange> ranges_;
};

}  // namespace

SummarySettings summary_settings(const config::ReportSection& section) {
  SummarySettings settings;
  settings.absolute_threshold = section.threshold;
  settings.effective = section.effective;
  settings.base_lengths = section.base_lengths;
  return settings;
}

std::vector<std::int64_t> base_lengths_of(const std::vector<std::int64_t>& tested, const eval::VariantRecord& record,
                                          const std::vector<std::string>& asked) {
  if (asked != std::vector<std::string>{"auto"}) {
    return config::expand_lengths(asked, record.trained_context.value_or(record.claimed_context));
  }
  std::vector<std::int64_t> out;
  for (const std::int64_t length : tested) {  // shortest first
    if (out.size() < 2 && (!record.trained_context || length <= *record.trained_context)) out.push_back(length);
  }
  return out;
}

bool RunSummary::shows_mean() const {
  return std::find(settings.effective.begin(), settings.effective.end(), "mean") != settings.effective.end();
}

bool RunSummary::names_task(std::size_t task) const {
  return std::any_of(settings.effective.begin(), settings.effective.end(), [&](const std::string& name) {
    return name == tasks[task].label || name == tasks[task].info.name;
  });
}

bool RunSummary::shows_task(std::size_t task) const {
  const auto& asked = settings.effective;
  return names_task(task) || std::find(asked.begin(), asked.end(), "each") != asked.end();
}

RunSummary summarise_run(const store::ResultReader& results, const std::string& run, const SummarySettings& settings) {
  RunSummary out = RunSummariser(results, run, settings).summarise();
  if (!out.info.pruned_at.empty()) restore_kept(results.kept(run), out);
  return out;
}

}  // namespace fathom::analysis
