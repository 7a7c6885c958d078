// Tables of what stands beside the main scores: chance levels, other scorers, bits by position, controls.

#include <fmt/format.h>

#include <map>
#include <set>
#include <tuple>

#include "harness/core/error.h"
#include "harness/scoring/scorer.h"
#include "reports/format.h"
#include "reports/table_parts.h"
#include "reports/tables.h"

namespace fathom::reports {
namespace {

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

Table guess_table(const TableSource& source) {
  Table table;
  table.caption = source.labels("guesses_caption");
  table.columns = {left_column(source.labels("task")), right_column(source.labels("blind"))};
  std::map<std::pair<std::int32_t, std::int64_t>, double> guesses;
  std::set<std::int64_t> lengths;
  for (const store::GuessRow& guess : source.run.guesses) {
    guesses[{guess.task, guess.length_tokens}] = guess.in_text_guess;
    lengths.insert(guess.length_tokens);
  }
  add_token_columns(lengths, table);
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
  table.columns = {left_column(l("scorer")), left_column(l("task")), left_column(l("variant"))};
  std::set<std::int64_t> lengths;
  for (const store::ScoreMeanRow& row : source.run.other_scores) lengths.insert(row.length_tokens);
  add_token_columns(lengths, table);
  const store::ScoreMeanRow* last = nullptr;
  for (const store::ScoreMeanRow& row : source.run.other_scores) {
    const bool same_row =
        last != nullptr && last->scorer == row.scorer && last->task == row.task && last->variant == row.variant;
    if (!same_row) {
      table.rows.push_back({{visible_text(row.scorer), scorer_unit_text(row.scorer, l)},
                            {shown_task(source, row.task)},
                            {shown_variant(source, row.variant)}});
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
  table.columns = {left_column(l("variant")), left_column(l("task")), right_column(l("length"))};
  std::set<std::int64_t> bins;
  for (const analysis::PositionCurve& curve : source.run.position_bits) {
    for (const auto& [first, bin] : curve.bits.bins()) bins.insert(first);
  }
  add_token_columns(bins, table);
  for (const analysis::PositionCurve& curve : source.run.position_bits) {
    std::vector<Cell> row = {
        {shown_variant(source, curve.variant)}, {shown_task(source, curve.task)}, tokens_cell(curve.length_tokens)};
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
  table.columns = {left_column(l("variant")), left_column(l("task")), left_column(l("control"))};
  std::set<std::int64_t> lengths;
  for (const store::ControlRow& row : source.run.controls) lengths.insert(row.length_tokens);
  add_token_columns(lengths, table);
  std::map<std::tuple<std::int32_t, std::int32_t, std::string>, std::map<std::int64_t, const store::ControlRow*>>
      groups;
  for (const store::ControlRow& row : source.run.controls)
    groups[{row.variant, row.task, row.control}][row.length_tokens] = &row;
  for (const auto& [place, by_length] : groups) {
    const auto& [variant, task, control] = place;
    std::vector<Cell> row = {{shown_variant(source, variant)}, {shown_task(source, task)}, {control}};
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

}  // namespace fathom::reports
