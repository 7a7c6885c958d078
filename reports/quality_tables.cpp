#include "reports/quality_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "reports/format.h"
#include "reports/table_parts.h"

namespace fathom::reports {
namespace {

Cell share_cell(std::int64_t n, std::int64_t n_samples) {
  if (n == 0) return {"0"};
  return {format_percent(static_cast<double>(n) / static_cast<double>(n_samples), n_samples) + " %",
          fmt::format("n={}", n)};
}

/// The guess that a score is held against, 0..1; nothing where even the blind one is certain.
std::optional<double> guess_of(const TableSource& source, std::size_t task, std::int64_t length_tokens) {
  double guess = source.run.tasks[task].info.blind_guess;
  for (const store::GuessRow& row : source.run.guesses) {
    const bool here = row.task == static_cast<std::int32_t>(task) && row.length_tokens == length_tokens;
    if (here && row.in_text_guess < 1) guess = std::max(guess, row.in_text_guess);
  }
  if (guess >= 1) return std::nullopt;
  return guess;
}

}  // namespace

Table reply_table(const TableSource& source) {
  const Labels& l = source.labels;
  Table table;
  table.caption = l("replies_caption");
  table.columns = {{l("variant"), Align::kLeft}, {l("task"), Align::kLeft}, {l("length")},           {l("samples")},
                   {l("empty_replies")},         {l("budget_hits")},        {l("mean_reply_tokens")}};
  for (const store::ReplyRow& row : source.run.replies) {
    if (row.n_empty == 0 && row.n_budget_hits == 0) continue;
    table.rows.push_back({{shown_variant(source, row.variant)},
                          {shown_task(source, row.task)},
                          {format_tokens(row.length_tokens)},
                          {format_count(row.n_samples)},
                          share_cell(row.n_empty, row.n_samples),
                          share_cell(row.n_budget_hits, row.n_samples),
                          {fmt::format("{:.1f}", row.mean_reply_tokens)}});
  }
  return table;
}

Table fit_table(const TableSource& source) {
  const Labels& l = source.labels;
  Table table;
  table.caption = l("fit_caption");
  table.columns = {{l("task"), Align::kLeft}, {l("length")}, {l("samples")}, {l("slack_tokens")}};
  // All variants of one tokenizer see the same prompts: the widest slack of each task and length says it once.
  std::map<std::pair<std::int32_t, std::int64_t>, store::ReplyRow> widest;
  for (const store::ReplyRow& row : source.run.replies) {
    if (row.n_fit_drift == 0) continue;
    auto& kept = widest.emplace(std::make_pair(row.task, row.length_tokens), row).first->second;
    kept.largest_slack_tokens = std::max(kept.largest_slack_tokens, row.largest_slack_tokens);
    kept.n_fit_drift = std::max(kept.n_fit_drift, row.n_fit_drift);
  }
  for (const auto& [place, row] : widest) {
    table.rows.push_back({{shown_task(source, row.task)},
                          {format_tokens(row.length_tokens)},
                          {format_count(row.n_fit_drift)},
                          {format_tokens(row.largest_slack_tokens)}});
  }
  return table;
}

Table corrected_table(const TableSource& source) {
  const Labels& l = source.labels;
  Table table;
  table.caption = l("corrected_caption");
  table.columns = {{l("variant"), Align::kLeft}, {l("task"), Align::kLeft}};
  bool any_guess = false;
  for (const std::int64_t length : source.run.lengths) table.columns.push_back({format_tokens_short(length)});
  for (std::size_t v = 0; v < source.run.variants.size(); ++v) {
    for (std::size_t t = 0; t < source.run.tasks.size(); ++t) {
      std::vector<Cell> row = {{shown_variant(source, static_cast<std::int32_t>(v))},
                               {shown_task(source, static_cast<std::int32_t>(t))}};
      bool scored = false;
      for (const std::int64_t length : source.run.lengths) {
        const auto& curve = source.run.variants[v].tasks[t].curve;
        const auto point =
            std::find_if(curve.begin(), curve.end(), [&](const auto& p) { return p.length_tokens == length; });
        const auto guess = guess_of(source, t, length);
        if (point == curve.end() || !point->mean || !guess) {
          row.push_back({std::string(kNothing)});
          continue;
        }
        scored = true;
        any_guess = any_guess || *guess > 0;
        row.push_back({fmt::format("{:.0f}", 100 * (*point->mean - *guess) / (1 - *guess))});
      }
      if (scored) table.rows.push_back(std::move(row));
    }
  }
  if (!any_guess) table.rows.clear();  // the same numbers as in the curves
  return table;
}

Table seed_table(const TableSource& source) {
  const Labels& l = source.labels;
  Table table;
  table.caption = l("seeds_caption");
  table.columns = {{l("setting"), Align::kLeft},
                   {l("task"), Align::kLeft},
                   {l("length")},
                   {l("n_seeds")},
                   {l("seeds_mean")},
                   {l("interval")},
                   {l("seed_sd")},
                   {l("sampling_sd")}};
  const auto points = [](const std::optional<double>& sd) {
    return sd ? fmt::format("{:.1f}", 100 * *sd) : std::string(kNothing);
  };
  for (const analysis::SeedGroupRow& row : source.run.seeds) {
    const analysis::SeedSpread& spread = row.spread;
    const std::int64_t n_values = static_cast<std::int64_t>(spread.n_seeds) * spread.n_samples;
    table.rows.push_back({{visible_text(row.setting)},
                          {shown_task(source, row.task)},
                          {format_tokens(row.length_tokens)},
                          {std::to_string(spread.n_seeds)},
                          {format_percent(spread.mean, n_values)},
                          {spread.interval ? format_percent_range(std::max(0.0, spread.interval->low),
                                                                  std::min(1.0, spread.interval->high), n_values)
                                           : std::string(kNothing)},
                          {points(spread.seed_sd)},
                          {points(spread.sampling_sd)}});
  }
  return table;
}

}  // namespace fathom::reports
