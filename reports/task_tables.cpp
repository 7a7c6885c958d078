// Effective context of each task, as a matrix of several variants or, of one, with what explains it beside.

#include <fmt/format.h>

#include <algorithm>

#include "harness/analysis/beyond_model.h"
#include "harness/core/text_util.h"
#include "reports/format.h"
#include "reports/table_parts.h"
#include "reports/tables.h"

namespace fathom::reports {
namespace {

using analysis::ScorePoint;
using analysis::TaskResult;
using analysis::VariantSummary;

/// What a token of the right answer costs under teacher forcing: moves long before answers are right.
constexpr std::string_view kGradedScorer = "bits_per_token";

std::vector<std::size_t> shown_tasks(const analysis::RunSummary& run) {
  std::vector<std::size_t> tasks;
  for (std::size_t t = 0; t < run.tasks.size(); ++t) {
    if (run.shows_task(t)) tasks.push_back(t);
  }
  return tasks;
}

Cell task_effective_cell(const TaskResult& task, const Labels& labels) {
  const std::string effective = format_effective_text(task.effective.absolute);
  if (task.beyond_model) return {labels("beyond_model"), effective};
  if (task.fails_without_control) return {effective, labels("fails_without_control")};
  return {effective, task.effective.absolute_low
                         ? format_effective_range(task.effective.absolute_low, task.effective.absolute_high)
                         : ""};
}

/// Tasks and variants, the fewer of them side by side.
Table variants_by_task(const TableSource& source, const std::vector<std::size_t>& tasks) {
  const std::vector<VariantSummary>& variants = source.run.variants;
  const bool task_rows = tasks.size() > variants.size();
  const auto task_name = [&](std::size_t i) { return visible_text(source.run.tasks[tasks[i]].label); };
  const auto variant_name = [&](std::size_t i) { return visible_text(variants[i].record.name); };
  const std::size_t n_rows = task_rows ? tasks.size() : variants.size();
  const std::size_t n_columns = task_rows ? variants.size() : tasks.size();
  Table table;
  table.caption = source.labels("by_task_caption");
  table.columns.push_back(left_column(source.labels(task_rows ? "task" : "variant")));
  for (std::size_t c = 0; c < n_columns; ++c)
    table.columns.push_back(right_column(task_rows ? variant_name(c) : task_name(c)));
  for (std::size_t r = 0; r < n_rows; ++r) {
    std::vector<Cell> row = {{task_rows ? task_name(r) : variant_name(r)}};
    for (std::size_t c = 0; c < n_columns; ++c) {
      const VariantSummary& variant = variants[task_rows ? c : r];
      row.push_back(task_effective_cell(variant.tasks[tasks[task_rows ? r : c]], source.labels));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// The rows of a run's only variant.
class OneVariantTable {
 public:
  explicit OneVariantTable(const TableSource& source)
      : source_(source),
        run_(source.run),
        variant_(source.run.variants.front()),
        has_controls_(analysis::asked_facts_alone(source.run.controls, 0, std::nullopt)),
        has_graded_(std::any_of(run_.other_scores.begin(), run_.other_scores.end(),
                                [](const store::ScoreMeanRow& row) { return row.scorer == kGradedScorer; })) {}

  Table build(const std::vector<std::size_t>& tasks) {
    const Labels& l = source_.labels;
    table_.caption = l("one_variant_caption");
    table_.columns = {left_column(l("task")), right_column(l("claimed")), right_column(l("effective_absolute")),
                      right_column(l("interval")), right_column(l("effective_relative"))};
    table_.columns.push_back(right_column(with_ends("score_ends")));
    if (has_controls_) table_.columns.push_back(right_column(l("facts_alone")));
    if (has_graded_) table_.columns.push_back(right_column(with_ends("graded_ends")));
    const bool has_remarks = std::any_of(tasks.begin(), tasks.end(), [&](std::size_t t) { return !remark(t).empty(); });
    if (has_remarks) table_.columns.push_back(left_column(l("remark")));
    for (const std::size_t t : tasks) add_task(t);
    if (run_.shows_mean()) add_row(l("mean"), variant_.mean, variant_.mean_curve, {});
    return std::move(table_);
  }

 private:
  std::string remark(std::size_t t) const {
    if (variant_.tasks[t].beyond_model) return source_.labels("beyond_model");
    return variant_.tasks[t].fails_without_control ? source_.labels("fails_without_control") : "";
  }

  /// \param beside  what follows the scores; may be shorter than the columns there are
  void add_row(const std::string& name, const analysis::EffectiveContext& effective,
               const std::vector<ScorePoint>& curve, std::vector<Cell> beside) {
    std::vector<Cell> row = {{name},
                             tokens_cell(variant_.record.claimed_context),
                             effective_cell(effective.absolute),
                             {format_effective_range(effective.absolute_low, effective.absolute_high)},
                             effective_cell(effective.relative)};
    row.push_back(ends_cell([&](std::int64_t length) {
      const ScorePoint* point = point_at(curve, length);
      return point == nullptr || !point->mean ? std::string(kNothing) : format_percent(*point->mean, point->n_values);
    }));
    row.insert(row.end(), beside.begin(), beside.end());
    row.resize(table_.columns.size());
    table_.rows.push_back(std::move(row));
  }

  void add_task(std::size_t t) {
    const TaskResult& task = variant_.tasks[t];
    std::vector<Cell> beside;
    if (has_controls_) {
      beside.push_back(ends_cell([&](std::int64_t length) {
        const auto alone = analysis::facts_alone_score(run_.controls, 0, static_cast<std::int32_t>(t), length);
        return alone ? format_percent(*alone, 1) : std::string(kNothing);
      }));
    }
    if (has_graded_) {
      beside.push_back(ends_cell([&](std::int64_t length) {
        for (const store::ScoreMeanRow& score : run_.other_scores) {
          if (score.task == static_cast<std::int32_t>(t) && score.length_tokens == length &&
              score.scorer == kGradedScorer) {
            return fmt::format("{:.2f}", score.mean);
          }
        }
        return std::string(kNothing);
      }));
    }
    const std::string said = remark(t);
    if (!said.empty()) beside.push_back({said});
    add_row(visible_text(run_.tasks[t].label), task.effective, task.curve, std::move(beside));
  }

  /// "100 → 45", or one value of a run with one length.
  template <typename TextAt>
  Cell ends_cell(TextAt&& text_at) const {
    if (run_.lengths.empty()) return {std::string(kNothing)};
    const std::string first = text_at(run_.lengths.front());
    if (run_.lengths.size() == 1) return {first};
    const std::string last = text_at(run_.lengths.back());
    return {first == kNothing && last == kNothing ? first : first + " → " + last};
  }

  std::string with_ends(std::string_view key) const {
    std::string ends;
    if (!run_.lengths.empty()) ends = format_tokens_short(run_.lengths.front());
    if (run_.lengths.size() > 1) ends += " → " + format_tokens_short(run_.lengths.back());
    return replace_all(source_.labels(key), "{lengths}", ends);
  }

  const TableSource& source_;
  const analysis::RunSummary& run_;
  const VariantSummary& variant_;
  const bool has_controls_;
  const bool has_graded_;
  Table table_;
};

}  // namespace

Table effective_by_task_table(const TableSource& source) {
  const std::vector<std::size_t> tasks = shown_tasks(source.run);
  if (source.run.variants.size() == 1) return OneVariantTable(source).build(tasks);
  return variants_by_task(source, tasks);
}

}  // namespace fathom::reports
