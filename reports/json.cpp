// The machine-readable report: stable names, fractions in 0..1, null where nothing can be said.

#include <nlohmann/json.hpp>
#include <ostream>

#include "harness/analysis/imported_summary.h"
#include "harness/core/types.h"
#include "reports/reports.h"

namespace fathom::reports {
namespace {

using nlohmann::ordered_json;

template <typename T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json tokens_or_null(const std::optional<analysis::EffectiveValue>& value) {
  return value ? or_null(value->tokens) : ordered_json(nullptr);
}

const char* censored_word(analysis::Censoring kind) {
  switch (kind) {
    case analysis::Censoring::kRight:
      return "right";
    case analysis::Censoring::kLeft:
      return "left";
    case analysis::Censoring::kExact:
    case analysis::Censoring::kNone:
      return "none";
  }
  throw InvariantError("unknown Censoring");
}

ordered_json effective_json(const analysis::EffectiveValue& value, const std::optional<analysis::EffectiveValue>& low,
                            const std::optional<analysis::EffectiveValue>& high) {
  return {{"tokens", or_null(value.tokens)},
          {"censored", censored_word(value.kind)},
          {"low", tokens_or_null(low)},
          {"high", tokens_or_null(high)}};
}

ordered_json both_rules_json(const analysis::EffectiveContext& effective) {
  return {{"absolute", effective_json(effective.absolute, effective.absolute_low, effective.absolute_high)},
          {"relative", effective_json(effective.relative, effective.relative_low, effective.relative_high)}};
}

/// Percent; an integer where it is one.
ordered_json depth_json(const std::optional<std::int32_t>& depth_bp) {
  if (!depth_bp) return nullptr;
  if (*depth_bp % 100 == 0) return *depth_bp / 100;
  return *depth_bp / 100.0;
}

ordered_json variant_json(const analysis::RunSummary& run, const analysis::VariantSummary& variant) {
  const eval::VariantRecord& record = variant.record;
  ordered_json effective = ordered_json::object();
  if (run.shows_mean()) effective["mean"] = both_rules_json(variant.mean);
  ordered_json cells = ordered_json::array();
  ordered_json beyond_model = ordered_json::array();
  ordered_json fails_without_control = ordered_json::array();
  for (std::size_t t = 0; t < run.tasks.size(); ++t) {
    if (variant.tasks[t].beyond_model) beyond_model.push_back(run.tasks[t].label);
    if (variant.tasks[t].fails_without_control) fails_without_control.push_back(run.tasks[t].label);
    if (run.shows_task(t)) effective[run.tasks[t].label] = both_rules_json(variant.tasks[t].effective);
    for (const analysis::ScorePoint& cell : variant.tasks[t].cells) {
      cells.push_back({{"task", run.tasks[t].label},
                       {"length", cell.length_tokens},
                       {"depth", depth_json(cell.depth_bp)},
                       {"n", cell.n_values},
                       {"mean", or_null(cell.mean)},
                       {"low", or_null(cell.low)},
                       {"high", or_null(cell.high)}});
    }
  }
  return {{"name", record.name},
          {"model", record.model},
          {"position", record.position},
          {"base", or_null(record.rope_base)},
          {"scaling", record.scaling},
          {"factor", or_null(record.factor)},
          {"claimed", record.claimed_context},
          {"trained", or_null(record.trained_context)},
          {"effective", effective},
          {"beyond_model", beyond_model},
          {"fails_without_control", fails_without_control},
          {"cells", cells}};
}

ordered_json controls_json(const analysis::RunSummary& run) {
  ordered_json rows = ordered_json::array();
  for (const store::ControlRow& row : run.controls) {
    rows.push_back({{"variant", run.variants[static_cast<std::size_t>(row.variant)].record.name},
                    {"task", run.tasks[static_cast<std::size_t>(row.task)].label},
                    {"control", row.control},
                    {"length", row.length_tokens},
                    {"n", row.n_samples},
                    {"mean", row.mean}});
  }
  return rows;
}

ordered_json imported_json(const analysis::ImportedSummary& summary) {
  ordered_json rows = ordered_json::array();
  for (const analysis::ImportedResult& result : summary.results) {
    ordered_json scores = ordered_json::array();
    for (const store::ImportedScore& score : result.row.scores) {
      scores.push_back({{"task", score.task.empty() ? "mean" : score.task},
                        {"length", score.length_tokens},
                        {"mean", score.percent / 100},
                        {"n", or_null(score.n_samples)}});
    }
    const bool listed = !result.row.listed_effective.empty();
    rows.push_back({{"model", result.row.model},
                    {"claimed", or_null(result.row.claimed_tokens)},
                    {"effective", effective_json(result.effective, std::nullopt, std::nullopt)},
                    {"listed", listed ? ordered_json(result.row.listed_effective) : ordered_json(nullptr)},
                    {"agreement", analysis::to_string(result.agreement)},
                    {"threshold", result.row.threshold_percent / 100},
                    {"strict", result.row.strict},
                    {"self_reported", result.row.self_reported},
                    {"note", result.row.note},
                    {"provenance", result.row.provenance},
                    {"scores", scores}});
  }
  return {{"source", summary.source.name},
          {"format", summary.source.format},
          {"provenance", summary.source.provenance},
          {"contradictions", summary.n_contradictions},
          {"rows", rows}};
}

void write_json(const store::ResultReader& results, const ReportOptions& options, std::ostream& out) {
  ordered_json runs = ordered_json::array();
  for (const analysis::RunSummary& run : load_runs(results, options)) {
    ordered_json variants = ordered_json::array();
    for (const analysis::VariantSummary& variant : run.variants) variants.push_back(variant_json(run, variant));
    runs.push_back({{"name", run.info.run.name}, {"variants", variants}});
    if (!run.controls.empty()) runs.back()["controls"] = controls_json(run);
  }
  ordered_json report{{"runs", runs}};
  ordered_json imported = ordered_json::array();
  for (const store::ImportedSource& source : results.imports())
    imported.push_back(imported_json(analysis::summarise_import(source)));
  if (!imported.empty()) report["imported"] = imported;
  // Names can hold anything; bytes that are no UTF-8 must not make the report fail.
  out << report.dump(1, ' ', false, ordered_json::error_handler_t::replace) << "\n";
}

}  // namespace

ReportEntry entries::json_entry() {
  return {"json", "every cell and effective length for other programs", "report.json", &write_json};
}

}  // namespace fathom::reports
