// Tables of what a run was and what it cost: tokens and time, training, provenance.

#include <fmt/format.h>

#include "reports/format.h"
#include "reports/table_parts.h"
#include "reports/tables.h"

namespace fathom::reports {
namespace {

std::string flag_text(const std::optional<bool>& flag, const Labels& labels) {
  return flag ? (*flag ? labels("yes") : labels("no")) : std::string(kNothing);
}

}  // namespace

Table cost_table(const TableSource& source) {
  const Labels& l = source.labels;
  Table table;
  table.caption = l("costs_caption");
  table.columns = {left_column(l("variant")), right_column(l("length")), right_column(l("samples")),
                   right_column(l("prompt_tokens")), right_column(l("computed_tokens"))};
  if (source.show_timings) {
    table.columns.push_back(right_column(l("seconds")));
    table.columns.push_back(right_column(l("tokens_per_second")));
    table.columns.push_back(right_column(l("peak_memory")));
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
  table.columns = {left_column(l("variant")), right_column(l("parameters")), right_column(l("trained")),
                   right_column(l("seed")),   right_column(l("steps")),      right_column(l("train_accuracy")),
                   left_column(l("mastered"))};
  if (source.show_timings) table.columns.push_back(right_column(l("seconds")));
  for (const analysis::VariantSummary& variant : source.run.variants) {
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
  table.columns = {left_column(""), left_column("")};
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

}  // namespace fathom::reports
