// A comparison for other programs: scores in 0..1, depths in percent, null where nothing can be said.

#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>

#include "reports/comparison/form.h"
#include "reports/comparison/wording.h"

namespace fathom::reports {
namespace {

using analysis::Comparison;
using nlohmann::ordered_json;

/// Scorers in bits; JSON has natural logarithms everywhere.
double comparison_unit(const std::string& scorer) {
  return scorer == "lp" || scorer == "gain" || scorer == "margin" ? std::log(2.0) : 1.0;
}

ordered_json comparison_interval(const std::optional<Interval>& interval, bool low, double unit) {
  if (!interval) return nullptr;
  return unit * (low ? interval->low : interval->high);
}

void add_comparison_scores(const analysis::PairedDifference& scores, double unit, ordered_json& out) {
  out["n_samples"] = scores.n_samples;
  out["n_values"] = scores.n_values;
  out["baseline"] = unit * scores.baseline;
  out["candidate"] = unit * scores.candidate;
  out["difference"] = unit * scores.difference;
  out["low"] = comparison_interval(scores.interval, true, unit);
  out["high"] = comparison_interval(scores.interval, false, unit);
}

ordered_json comparison_effective(const analysis::EffectiveValue& value) {
  const char* censored = value.kind == analysis::Censoring::kRight  ? "right"
                         : value.kind == analysis::Censoring::kLeft ? "left"
                                                                    : "none";
  return {{"tokens", value.tokens ? ordered_json(*value.tokens) : ordered_json(nullptr)}, {"censored", censored}};
}

ordered_json comparison_unit_json(const Comparison& comparison, const analysis::GateUnit& unit) {
  ordered_json out = {{"kind", analysis::to_string(unit.kind)}, {"variant", comparison.pairs[unit.pair].name}};
  if (unit.is_effective()) {
    out["baseline"] = comparison_effective(unit.effective.baseline);
    out["candidate"] = comparison_effective(unit.effective.candidate);
    out["steps"] = unit.effective.steps;
  } else {
    out["task"] = unit.task.empty() ? ordered_json(nullptr) : ordered_json(unit.task);
    out["length"] = unit.length_tokens;
    add_comparison_scores(unit.scores, 1, out);
  }
  out["p"] = unit.p;
  out["p_adjusted"] = unit.p_adjusted;
  out["verdict"] = analysis::to_string(unit.verdict);
  return out;
}

ordered_json comparison_depth(const std::optional<std::int32_t>& depth_bp) {
  if (!depth_bp) return nullptr;
  if (*depth_bp % 100 == 0) return *depth_bp / 100;
  return *depth_bp / 100.0;
}

ordered_json comparison_cell(const Comparison& comparison, const analysis::CellChange& cell) {
  ordered_json examples = ordered_json::array();
  for (const analysis::MissExample& example : cell.examples) {
    examples.push_back({{"index", example.index},
                        {"prompt_tail", example.prompt_tail},
                        {"expected", example.expected},
                        {"baseline", example.baseline_reply},
                        {"got", example.candidate_reply},
                        {"baseline_score", example.baseline_score},
                        {"score", example.candidate_score}});
  }
  return {{"variant", comparison.pairs[cell.pair].name},
          {"task", cell.task},
          {"length", cell.length_tokens},
          {"depth", comparison_depth(cell.depth_bp)},
          {"n", cell.n_samples},
          {"baseline", cell.baseline},
          {"candidate", cell.candidate},
          {"p", cell.p},
          {"p_adjusted", cell.p_adjusted},
          {"examples", examples}};
}

ordered_json comparison_shared(const Comparison& comparison, const analysis::SharedCount& counted) {
  return {{"variant", comparison.pairs[counted.pair].name},
          {"task", counted.task},
          {"length", counted.length_tokens},
          {"shared", counted.n_shared},
          {"only_baseline", counted.n_only_baseline},
          {"only_candidate", counted.n_only_candidate},
          {"other_question", counted.n_other_question},
          {"failed_baseline", counted.n_failed_baseline},
          {"failed_candidate", counted.n_failed_candidate},
          {"unfit", counted.n_unfit}};
}

ordered_json comparison_side(const store::RunInfo& info, const std::string& database) {
  return {{"run", info.run.name}, {"db", database}, {"started", info.run.started_at}};
}

const char* comparison_verdict(ExitCode code) {
  return code == ExitCode::kOk ? "ok" : code == ExitCode::kRegression ? "regression" : "incomplete";
}

void write_comparison_json(const Comparison& comparison, std::ostream& out) {
  ordered_json units = ordered_json::array();
  for (const analysis::GateUnit& unit : comparison.units) units.push_back(comparison_unit_json(comparison, unit));
  ordered_json cells = ordered_json::array();
  for (const analysis::CellChange& cell : comparison.worst_cells) cells.push_back(comparison_cell(comparison, cell));
  ordered_json shared = ordered_json::array();
  for (const analysis::SharedCount& counted : comparison.shared) {
    shared.push_back(comparison_shared(comparison, counted));
  }
  ordered_json other = ordered_json::array();
  for (const analysis::ScoreChange& change : comparison.other_scores) {
    ordered_json one = {{"variant", comparison.pairs[change.pair].name},
                        {"scorer", change.scorer},
                        {"task", change.task},
                        {"length", change.length_tokens}};
    add_comparison_scores(change.scores, comparison_unit(change.scorer), one);
    one["p"] = change.scores.p;
    other.push_back(std::move(one));
  }
  const ordered_json all = {{"verdict", comparison_verdict(comparison.exit_code())},
                            {"exit_code", static_cast<int>(comparison.exit_code())},
                            {"summary", comparison_headline(comparison)},
                            {"tolerance_points", comparison.settings.tolerance_points},
                            {"alpha", comparison.settings.alpha},
                            {"baseline", comparison_side(comparison.baseline, comparison.baseline_database)},
                            {"candidate", comparison_side(comparison.candidate, comparison.candidate_database)},
                            {"incomplete", comparison.incomplete},
                            {"units", units},
                            {"worst_cells", cells},
                            {"other_scores", other},
                            {"shared", shared},
                            {"only_baseline_variants", comparison.only_baseline_variants},
                            {"only_candidate_variants", comparison.only_candidate_variants},
                            {"differences", comparison.differences}};
  out << all.dump(1, ' ', false, ordered_json::error_handler_t::replace) << "\n";
}

}  // namespace

ComparisonFormEntry comparison_entries::json_entry() {
  return {"json", "every test, cell and count for other programs", &write_comparison_json};
}

}  // namespace fathom::reports
