#include "reports/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/core/text_util.h"
#include "reports/format.h"
#include "reports/table_parts.h"

namespace fathom::reports {
namespace {

using analysis::ScorePoint;
using analysis::TaskResult;
using analysis::VariantSummary;

Cell optional_percent_cell(const std::optional<double>& percent, std::int64_t n_values) {
  return {percent ? format_percent(*percent / 100, n_values) : std::string(kNothing)};
}

std::int64_t values_of(const VariantSummary& variant) {
  std::int64_t n = 0;
  for (const TaskResult& task : variant.tasks) {
    for (const ScorePoint& point : task.curve) n += point.n_values;
  }
  return n;
}

/// One row a variant, one column a length.
template <typename CurveOf>
Table curve_table(const TableSource& source, const std::string& caption, CurveOf&& curve_of) {
  Table table;
  table.caption = caption;
  table.columns.push_back(left_column(source.labels("variant")));
  std::set<std::int64_t> lengths;
  for (const VariantSummary& variant : source.run.variants) {
    for (const ScorePoint& point : curve_of(variant)) lengths.insert(point.length_tokens);
  }
  add_token_columns(lengths, table);
  for (const VariantSummary& variant : source.run.variants) {
    std::vector<Cell> row = {{visible_text(variant.record.name)}};
    for (const std::int64_t length : lengths) {
      const ScorePoint* point = point_at(curve_of(variant), length);
      row.push_back(point == nullptr ? Cell{std::string(kNothing)} : score_cell(*point));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// Every score of a variant that has any is 0.
bool all_zero(const std::vector<ScorePoint>& curve) {
  return !curve.empty() &&
         std::all_of(curve.begin(), curve.end(), [](const ScorePoint& p) { return p.mean && *p.mean == 0; });
}

/// Prompts and template are then not what the zeros of `variant` come from.
bool another_of_same_model_scores(const analysis::RunSummary& run, const VariantSummary& variant) {
  const auto scores = [](const ScorePoint& point) { return point.mean && *point.mean > 0; };
  return std::any_of(run.variants.begin(), run.variants.end(), [&](const VariantSummary& other) {
    return other.record.model == variant.record.model &&
           std::any_of(other.mean_curve.begin(), other.mean_curve.end(), scores);
  });
}

std::vector<std::string> labels_of_tasks(const analysis::RunSummary& run, const VariantSummary& variant,
                                         bool TaskResult::*mark) {
  std::vector<std::string> labels;
  for (std::size_t t = 0; t < run.tasks.size(); ++t) {
    if (variant.tasks[t].*mark) labels.push_back(visible_text(run.tasks[t].label));
  }
  return labels;
}

/// Notes shared by several variants are said once.
void add_note(std::vector<std::pair<std::string, std::vector<std::string>>>& notes, const std::string& note,
              const std::string& who) {
  for (auto& [text, names] : notes) {
    if (text != note) continue;
    names.push_back(who);
    return;
  }
  notes.push_back({note, {who}});
}

}  // namespace

Cell score_cell(const ScorePoint& point) {
  if (!point.mean) {
    return {std::string(kNothing), point.n_failed > 0 ? fmt::format("{} failed", point.n_failed) : ""};
  }
  Cell cell{format_percent(*point.mean, point.n_values)};
  cell.detail = point.low && point.high ? format_percent_range(*point.low, *point.high, point.n_values)
                                        : fmt::format("n={}", point.n_values);
  if (point.n_failed > 0) cell.detail += fmt::format(", {} failed", point.n_failed);
  return cell;
}

std::string with_settings(const TableSource& source, std::string_view key) {
  const std::string text =
      replace_all(source.labels(key), "{threshold}", format_double(source.run.settings.absolute_threshold));
  return replace_all(text, "{resamples}", std::to_string(source.run.settings.resamples));
}

std::string headline_name(const TableSource& source) {
  const auto& tasks = source.run.headline_tasks;
  return tasks.empty() ? source.labels("mean") : visible_text(join(tasks, ", "));
}

bool headline_has_curve(const TableSource& source) {
  return source.run.tasks.size() > 1 && source.run.headline_tasks.size() != 1;
}

Table summary_table(const TableSource& source) {
  const Labels& l = source.labels;
  Table table;
  table.caption = replace_all(l("summary_caption"), "{headline}",
                              source.run.headline_tasks.empty() ? l("the_mean") : headline_name(source));
  table.columns = {left_column(l("variant")),
                   right_column(l("claimed")),
                   right_column(l("trained")),
                   right_column(l("effective_absolute")),
                   right_column(l("interval")),
                   right_column(l("effective_relative")),
                   right_column(l("relative_interval")),
                   right_column(l("share")),
                   right_column(l("average")),
                   right_column(l("weighted_increasing")),
                   right_column(l("weighted_decreasing")),
                   right_column(l("base"))};
  for (const VariantSummary& variant : source.run.variants) {
    const eval::VariantRecord& record = variant.record;
    const analysis::EffectiveContext& mean = variant.mean;
    const std::int64_t n = values_of(variant);
    table.rows.push_back({{visible_text(record.name)},
                          tokens_cell(record.claimed_context),
                          record.trained_context ? tokens_cell(*record.trained_context) : Cell{std::string(kNothing)},
                          effective_cell(mean.absolute),
                          {format_effective_range(mean.absolute_low, mean.absolute_high)},
                          effective_cell(mean.relative),
                          {format_effective_range(mean.relative_low, mean.relative_high)},
                          {format_multiple(mean.absolute, record.trained_context.value_or(0))},
                          optional_percent_cell(mean.average, n),
                          optional_percent_cell(mean.weighted_increasing, n),
                          optional_percent_cell(mean.weighted_decreasing, n),
                          optional_percent_cell(mean.base_score, n)});
  }
  return table;
}

Table mean_curve_table(const TableSource& source) {
  return curve_table(
      source, headline_name(source), [](const VariantSummary& v) -> const auto& { return v.mean_curve; });
}

Table task_curve_table(const TableSource& source, std::size_t task) {
  return curve_table(
      source, visible_text(source.run.tasks[task].label), [task](const VariantSummary& v) -> const auto& {
        return v.tasks[task].curve;
      });
}

Table depth_table(const TableSource& source, std::size_t variant, std::size_t task) {
  const TaskResult& result = source.run.variants[variant].tasks[task];
  std::set<std::int64_t> lengths;
  std::set<std::int32_t> depths;
  for (const ScorePoint& cell : result.cells) {
    if (!cell.depth_bp) continue;
    lengths.insert(cell.length_tokens);
    depths.insert(*cell.depth_bp);
  }
  Table table;
  table.caption = visible_text(source.run.variants[variant].record.name + " · " + source.run.tasks[task].label);
  table.columns.push_back(right_column(source.labels("depth_percent")));
  add_token_columns(lengths, table);
  for (const std::int32_t depth : depths) {
    std::vector<Cell> row = {{format_depth(depth)}};
    for (const std::int64_t length : lengths) {
      Cell cell{std::string(kNothing)};
      for (const ScorePoint& point : result.cells) {
        if (point.length_tokens == length && point.depth_bp == depth) cell = score_cell(point);
      }
      row.push_back(std::move(cell));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table unbuilt_table(const TableSource& source) {
  const Labels& l = source.labels;
  Table table;
  table.caption = l("unbuilt_caption");
  table.columns = {left_column(l("task")),    right_column(l("length")), right_column(l("depth_percent")),
                   left_column(l("variant")), left_column(l("reason")),  right_column(l("needs"))};
  // What is too short for one variant mostly is for all of them: one row for all that share everything else.
  std::vector<std::pair<std::vector<Cell>, std::vector<std::string>>> groups;
  for (const VariantSummary& variant : source.run.variants) {
    for (const eval::CellRecord& cell : variant.unbuilt) {
      std::string reason = std::string(eval::to_string(cell.status));
      if (!cell.detail.empty()) reason += ": " + visible_text(cell.detail);
      const std::string label = cell.task.variant == task::TaskVariant::kBalanced ? cell.task.name : cell.task.full();
      std::vector<Cell> row = {
          {visible_text(label)},
          tokens_cell(cell.length_tokens),
          {cell.depth_bp ? format_depth(*cell.depth_bp) : std::string(kNothing)},
          {""},
          {reason},
          {cell.smallest_length_tokens ? format_tokens(*cell.smallest_length_tokens) : std::string(kNothing)}};
      const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
        for (std::size_t c = 0; c < row.size(); ++c) {
          if (group.first[c].text != row[c].text) return false;
        }
        return true;
      });
      if (same == groups.end()) {
        groups.emplace_back(std::move(row), std::vector<std::string>{visible_text(variant.record.name)});
      } else {
        same->second.push_back(visible_text(variant.record.name));
      }
    }
  }
  for (auto& [row, names] : groups) {
    const bool everyone = names.size() == source.run.variants.size() && names.size() > 1;
    row[3].text = everyone ? l("all_variants") : join(names, ", ");
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::vector<std::string> summary_notes(const TableSource& source) {
  std::vector<std::pair<std::string, std::vector<std::string>>> notes;
  bool trained_here = false;
  for (const VariantSummary& variant : source.run.variants) {
    const std::string name = visible_text(variant.record.name);
    trained_here = trained_here || variant.record.train_seed.has_value();
    if (variant.record.mastered && !*variant.record.mastered) add_note(notes, source.labels("note_not_mastered"), name);
    if (all_zero(variant.mean_curve)) {
      const bool only_here = another_of_same_model_scores(source.run, variant);
      add_note(notes, source.labels(only_here ? "note_zero_of_variant" : "note_zero"), name);
    }
    for (const auto& [label, mark] : {std::pair("note_beyond_model", &TaskResult::beyond_model),
                                      std::pair("note_fails_without_control", &TaskResult::fails_without_control)}) {
      const std::vector<std::string> tasks = labels_of_tasks(source.run, variant, mark);
      if (!tasks.empty()) add_note(notes, replace_all(source.labels(label), "{tasks}", join(tasks, ", ")), name);
    }
    std::set<std::string> said;
    for (const auto* value : {&variant.mean.absolute, &variant.mean.relative}) {
      for (const std::string& note : value->notes) {
        if (said.insert(note).second) add_note(notes, note, name);
      }
    }
  }
  std::vector<std::string> out;
  for (const auto& [note, names] : notes) {
    const bool everyone = names.size() == source.run.variants.size() && names.size() > 1;
    const std::string who = everyone ? source.labels("all_variants") : join(names, ", ");
    out.push_back(fmt::format("{}: {}", who, note));
  }
  if (trained_here) out.push_back(source.labels("note_one_run"));
  return out;
}

}  // namespace fathom::reports
