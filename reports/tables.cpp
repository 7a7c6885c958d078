#include "reports/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/scoring/scorer.h"
#include "reports/format.h"

namespace fathom::reports {
namespace {

using analysis::ScorePoint;
using analysis::TaskResult;
using analysis::VariantSummary;

Cell tokens_cell(std::int64_t tokens) {
  return {format_tokens(tokens), k_form(tokens)};
}

Cell effective_cell(const analysis::EffectiveValue& value) {
  return {format_effective_text(value), value.tokens ? k_form(*value.tokens) : ""};
}

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

Column left(const std::string& heading) {
  return {heading, Align::kLeft};
}
Column right(const std::string& heading) {
  return {heading, Align::kRight};
}

const ScorePoint* point_at(const std::vector<ScorePoint>& curve, std::int64_t length_tokens) {
  for (const ScorePoint& point : curve) {
    if (point.length_tokens == length_tokens) return &point;
  }
  return nullptr;
}

/// One row a variant, one column a length.
template <typename CurveOf>
Table curve_table(const TableSource& source, const std::string& caption, CurveOf&& curve_of) {
  Table table;
  table.caption = caption;
  table.columns.push_back(left(source.labels("variant")));
  std::set<std::int64_t> lengths;
  for (const VariantSummary& variant : source.run.variants) {
    for (const ScorePoint& point : curve_of(variant)) lengths.insert(point.length_tokens);
  }
  for (const std::int64_t length : lengths) table.columns.push_back(right(format_tokens_short(length)));
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

std::string flag_text(const std::optional<bool>& flag, const Labels& labels) {
  return flag ? (*flag ? labels("yes") : labels("no")) : std::string(kNothing);
}

std::vector<std::string> tasks_beyond_model(const analysis::RunSummary& run, const VariantSummary& variant) {
  std::vector<std::string> labels;
  for (std::size_t t = 0; t < run.tasks.size(); ++t) {
    if (variant.tasks[t].beyond_model) labels.push_back(visible_text(run.tasks[t].label));
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

bool is_fraction_scorer(const std::string& name) {
  const scoring::ScorerEntry* entry = scoring::scorers().find(name);
  return entry != nullptr && entry->unit == scoring::ScoreUnit::kFraction;
}

/// "bits", "%", or nothing for ranks, counts and scorers of another build.
std::string scorer_unit_text(const std::string& name, const Labels& labels) {
  const scoring::ScorerEntry* entry = scoring::scorers().find(name);
  if (entry == nullptr) return "";
  switch (entry->unit) {
    case scoring::ScoreUnit::kFraction:
      return "%";
    case scoring::ScoreUnit::kBits:
      return labels("bits");
    case scoring::ScoreUnit::kRank:
    case scoring::ScoreUnit::kCount:
      return "";
  }
  throw InvariantError("unknown ScoreUnit");
}

std::string other_score_text(const store::ScoreMeanRow& row) {
  return is_fraction_scorer(row.scorer) ? format_percent(row.mean, row.n_samples) : fmt::format("{:.3g}", row.mean);
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
  table.columns = {left(l("variant")),
                   right(l("claimed")),
                   right(l("trained")),
                   right(l("effective_absolute")),
                   right(l("interval")),
                   right(l("effective_relative")),
                   right(l("relative_interval")),
                   right(l("share")),
                   right(l("average")),
                   right(l("weighted_increasing")),
                   right(l("weighted_decreasing")),
                   right(l("base"))};
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

Table effective_by_task_table(const TableSource& source) {
  Table table;
  table.caption = source.labels("by_task_caption");
  table.columns.push_back(left(source.labels("variant")));
  const auto& tasks = source.run.tasks;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    if (source.run.shows_task(t)) table.columns.push_back(right(visible_text(tasks[t].label)));
  }
  for (const VariantSummary& variant : source.run.variants) {
    std::vector<Cell> row = {{visible_text(variant.record.name)}};
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      if (!source.run.shows_task(t)) continue;
      const analysis::EffectiveContext& effective = variant.tasks[t].effective;
      if (variant.tasks[t].beyond_model) {
        row.push_back({source.labels("beyond_model"), format_effective_text(effective.absolute)});
        continue;
      }
      row.push_back(
          {format_effective_text(effective.absolute),
           effective.absolute_low ? format_effective_range(effective.absolute_low, effective.absolute_high) : ""});
    }
    table.rows.push_back(std::move(row));
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
  table.columns.push_back(right(source.labels("depth_percent")));
  for (const std::int64_t length : lengths) table.columns.push_back(right(format_tokens_short(length)));
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
  table.columns = {left(l("task")),    right(l("length")), right(l("depth_percent")),
                   left(l("variant")), left(l("reason")),  right(l("needs"))};
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
        groups.push_back({std::move(row), {visible_text(variant.record.name)}});
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

Table guess_table(const TableSource& source) {
  Table table;
  table.caption = source.labels("guesses_caption");
  table.columns = {left(source.labels("task")), right(source.labels("blind"))};
  std::map<std::pair<std::int32_t, std::int64_t>, double> guesses;
  std::set<std::int64_t> lengths;
  for (const store::GuessRow& guess : source.run.guesses) {
    guesses[{guess.task, guess.length_tokens}] = guess.in_text_guess;
    lengths.insert(guess.length_tokens);
  }
  for (const std::int64_t length : lengths) table.columns.push_back(right(format_tokens_short(length)));
  // Guess levels are exact: their digits do not depend on a number of samples.
  const auto percent = [](double share) { return fmt::format("{:.3g}", 100 * share); };
  for (std::size_t t = 0; t < source.run.tasks.size(); ++t) {
    std::vector<Cell> row = {{visible_text(source.run.tasks[t].label)},
                             {percent(source.run.tasks[t].info.blind_guess)}};
    for (const std::int64_t length : lengths) {
      const auto found = guesses.find({static_cast<std::int32_t>(t), length});
      row.push_back({found == guesses.end() ? std::string(kNothing) : percent(found->second)});
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table other_scores_table(const TableSource& source) {
  const Labels& l = source.labels;
  Table table;
  table.caption = l("other_scores_caption");
  table.columns = {left(l("scorer")), left(l("task")), left(l("variant"))};
  std::set<std::int64_t> lengths;
  for (const store::ScoreMeanRow& row : source.run.other_scores) lengths.insert(row.length_tokens);
  for (const std::int64_t length : lengths) table.columns.push_back(right(format_tokens_short(length)));
  const store::ScoreMeanRow* last = nullptr;
  for (const store::ScoreMeanRow& row : source.run.other_scores) {
    const bool same_row =
        last != nullptr && last->scorer == row.scorer && last->task == row.task && last->variant == row.variant;
    if (!same_row) {
      table.rows.push_back({{visible_text(row.scorer), scorer_unit_text(row.scorer, l)},
                            {visible_text(source.run.tasks[static_cast<std::size_t>(row.task)].label)},
                            {visible_text(source.run.variants[static_cast<std::size_t>(row.variant)].record.name)}});
      table.rows.back().resize(table.columns.size(), Cell{std::string(kNothing)});
    }
    const auto column = 3 + std::distance(lengths.begin(), lengths.find(row.length_tokens));
    table.rows.back()[static_cast<std::size_t>(column)] = {other_score_text(row), fmt::format("n={}", row.n_samples)};
    last = &row;
  }
  return table;
}

Table position_bits_table(const TableSource& source) {
  const Labels& l = source.labels;
  Table table;
  table.caption = l("position_bits_caption");
  table.columns = {left(l("variant")), left(l("task")), right(l("length"))};
  std::set<std::int64_t> bins;
  for (const analysis::PositionCurve& curve : source.run.position_bits) {
    for (const auto& [first, bin] : curve.bits.bins()) bins.insert(first);
  }
  for (const std::int64_t first : bins) table.columns.push_back(right(format_tokens_short(first)));
  for (const analysis::PositionCurve& curve : source.run.position_bits) {
    std::vector<Cell> row = {{visible_text(source.run.variants[static_cast<std::size_t>(curve.variant)].record.name)},
                             {visible_text(source.run.tasks[static_cast<std::size_t>(curve.task)].label)},
                             tokens_cell(curve.length_tokens)};
    for (const std::int64_t first : bins) {
      const auto found = curve.bits.bins().find(first);
      row.push_back(found == curve.bits.bins().end() ? Cell{std::string(kNothing)}
                                                     : Cell{fmt::format("{:.2f}", found->second.mean()),
                                                            fmt::format("n={}", found->second.n_tokens)});
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table control_table(const TableSource& source) {
  const Labels& l = source.labels;
  Table table;
  table.caption = l("controls_caption");
  table.columns = {left(l("variant")), left(l("task")), left(l("control"))};
  std::set<std::int64_t> lengths;
  for (const store::ControlRow& row : source.run.controls) lengths.insert(row.length_tokens);
  for (const std::int64_t length : lengths) table.columns.push_back(right(format_tokens_short(length)));
  std::map<std::tuple<std::int32_t, std::int32_t, std::string>, std::map<std::int64_t, const store::ControlRow*>>
      groups;
  for (const store::ControlRow& row : source.run.controls)
    groups[{row.variant, row.task, row.control}][row.length_tokens] = &row;
  for (const auto& [place, by_length] : groups) {
    const auto& [variant, task, control] = place;
    std::vector<Cell> row = {{visible_text(source.run.variants[static_cast<std::size_t>(variant)].record.name)},
                             {visible_text(source.run.tasks[static_cast<std::size_t>(task)].label)},
                             {control}};
    for (const std::int64_t length : lengths) {
      const auto found = by_length.find(length);
      row.push_back(found == by_length.end() ? Cell{std::string(kNothing)}
                                             : Cell{format_percent(found->second->mean, found->second->n_samples),
                                                    fmt::format("n={}", found->second->n_samples)});
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table cost_table(const TableSource& source) {
  const Labels& l = source.labels;
  Table table;
  table.caption = l("costs_caption");
  table.columns = {left(l("variant")), right(l("length")), right(l("samples")), right(l("prompt_tokens")),
                   right(l("computed_tokens"))};
  if (source.show_timings) {
    table.columns.push_back(right(l("seconds")));
    table.columns.push_back(right(l("tokens_per_second")));
    table.columns.push_back(right(l("peak_memory")));
  }
  for (const store::CostRow& cost : source.run.costs) {
    std::vector<Cell> row = {{visible_text(cost.variant)},
                             tokens_cell(cost.length_tokens),
                             {format_count(cost.n_samples)},
                             {format_count(cost.prompt_tokens)},
                             {format_count(cost.computed_tokens)}};
    if (source.show_timings) {
      row.push_back({format_seconds(cost.seconds)});
      const bool timed = cost.seconds > 0;
      row.push_back(
          {timed ? format_count(static_cast<std::int64_t>(static_cast<double>(cost.prompt_tokens) / cost.seconds))
                 : std::string(kNothing)});
      row.push_back({cost.peak_rss_bytes > 0 ? format_bytes(cost.peak_rss_bytes) : std::string(kNothing)});
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table training_table(const TableSource& source) {
  const Labels& l = source.labels;
  Table table;
  table.caption = l("training");
  table.columns = {left(l("variant")), right(l("parameters")),     right(l("trained")), right(l("seed")),
                   right(l("steps")),  right(l("train_accuracy")), left(l("mastered"))};
  if (source.show_timings) table.columns.push_back(right(l("seconds")));
  for (const VariantSummary& variant : source.run.variants) {
    const eval::VariantRecord& record = variant.record;
    if (!record.train_seed) continue;
    const auto number = [](const std::optional<std::int64_t>& value) {
      return value ? format_count(*value) : std::string(kNothing);
    };
    std::vector<Cell> row = {
        {visible_text(record.name)},
        {format_count(record.parameters)},
        record.trained_context ? tokens_cell(*record.trained_context) : Cell{std::string(kNothing)},
        {number(record.train_seed)},
        {number(record.train_steps)},
        {record.train_accuracy ? fmt::format("{:.1f}", 100 * *record.train_accuracy) : std::string(kNothing)},
        {flag_text(record.mastered, l)}};
    if (source.show_timings)
      row.push_back({record.train_seconds ? format_seconds(*record.train_seconds) : std::string(kNothing)});
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table provenance_table(const TableSource& source) {
  const Labels& l = source.labels;
  const eval::RunRecord& run = source.run.info.run;
  Table table;
  table.caption = l("provenance");
  table.columns = {left(""), left("")};
  const auto add = [&](const char* key, const std::string& value) {
    table.rows.push_back({{l(key)}, {value.empty() ? std::string(kNothing) : visible_text(value)}});
  };
  add("run", run.name);
  add("fingerprint", run.config_fingerprint);
  add("seed", std::to_string(run.seed));
  add("tool_version", run.tool_version);
  add("source_revision", run.source_revision);
  add("library_versions", run.library_versions);
  if (source.show_timings) {
    add("hardware", run.hardware);
    add("started", run.started_at);
    add("finished", source.run.info.finished_at);
  }
  add("estimators", l("estimators_text"));
  return table;
}

std::vector<std::string> summary_notes(const TableSource& source) {
  std::vector<std::pair<std::string, std::vector<std::string>>> notes;
  bool trained_here = false;
  for (const VariantSummary& variant : source.run.variants) {
    const std::string name = visible_text(variant.record.name);
    trained_here = trained_here || variant.record.train_seed.has_value();
    if (variant.record.mastered && !*variant.record.mastered) add_note(notes, source.labels("note_not_mastered"), name);
    if (all_zero(variant.mean_curve)) add_note(notes, source.labels("note_zero"), name);
    const std::vector<std::string> beyond = tasks_beyond_model(source.run, variant);
    if (!beyond.empty()) {
      add_note(notes, replace_all(source.labels("note_beyond_model"), "{tasks}", join(beyond, ", ")), name);
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
    out.push_back(who + ": " + note);
  }
  if (trained_here) out.push_back(source.labels("note_one_run"));
  return out;
}

}  // namespace fathom::reports
