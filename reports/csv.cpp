// One flat table for spreadsheets: a row a cell, a pooled length, and an effective length.

#include <fmt/format.h>

#include <ostream>

#include "harness/analysis/imported_summary.h"
#include "harness/core/text_util.h"
#include "reports/format.h"
#include "reports/reports.h"

namespace fathom::reports {
namespace {

constexpr const char* kCsvHeader =
    "record,run,variant,model,position,base,scaling,factor,claimed,trained,task,length,depth,n_samples,n_values,n_"
    "failed,mean,low,high,"
    "estimator,rule,tokens,censored,tokens_low,tokens_high,status,detail\n";

/// Fields of one row by column name order; empty where nothing can be said.
struct CsvRow {
  std::string record, task, length, depth, n_samples, n_values, n_failed, mean, low, high, estimator;
  std::string rule, tokens, censored, tokens_low, tokens_high, status, detail;
};

/// Quoted where it must be; a leading sign that a spreadsheet would run as a formula is disarmed by a quote mark.
std::string csv_field(const std::string& text) {
  std::string value = text;
  if (!value.empty() && std::string_view("=+-@\t").find(value.front()) != std::string_view::npos &&
      !parse_double(value)) {
    value.insert(value.begin(), '\'');
  }
  if (value.find_first_of(",\"\r\n") == std::string::npos) return value;
  return "\"" + replace_all(value, "\"", "\"\"") + "\"";
}

std::string csv_number(const std::optional<double>& value) {
  return value ? format_double(*value) : "";
}
std::string csv_number(const std::optional<std::int64_t>& value) {
  return value ? std::to_string(*value) : "";
}

std::string csv_tokens(const std::optional<analysis::EffectiveValue>& value) {
  return value && value->tokens ? std::to_string(*value->tokens) : "";
}

class CsvWriter {
 public:
  explicit CsvWriter(std::ostream& out) : out_(out) { out_ << kCsvHeader; }

  void write_run(const analysis::RunSummary& run) {
    for (const analysis::VariantSummary& variant : run.variants) {
      set_variant(run, variant.record);
      write_variant(run, variant);
    }
    write_controls(run);
  }

  void write_controls(const analysis::RunSummary& run) {
    for (const store::ControlRow& control : run.controls) {
      const eval::VariantRecord& v = run.variants[static_cast<std::size_t>(control.variant)].record;
      set_variant(run, v);
      CsvRow row;
      row.record = "control";
      row.task = run.tasks[static_cast<std::size_t>(control.task)].label;
      row.length = std::to_string(control.length_tokens);
      row.n_values = std::to_string(control.n_samples);
      row.mean = format_double(control.mean);
      row.detail = control.control;
      write_row(row);
    }
  }

  /// Results of other tools: the source stands as the run, its models as variants.
  void write_imported(const analysis::ImportedSummary& summary) {
    for (const analysis::ImportedResult& result : summary.results) {
      const store::ImportedRow& source = result.row;
      front_ = {summary.source.name, source.model, source.model, "", "", "", "", csv_number(source.claimed_tokens), ""};
      CsvRow effective;
      effective.record = "imported_effective";
      effective.task = "mean";
      effective.rule = fmt::format("{} {}", source.strict ? "above" : "at_least", source.threshold_percent);
      effective.tokens = csv_number(result.effective.tokens);
      effective.censored = censored_word(result.effective.kind);
      effective.status = std::string(analysis::to_string(result.agreement));
      effective.detail = source.listed_effective;
      write_row(effective);
      for (const store::ImportedScore& score : source.scores) {
        CsvRow row;
        row.record = "imported";
        row.task = score.task.empty() ? "mean" : score.task;
        row.length = std::to_string(score.length_tokens);
        row.n_samples = csv_number(score.n_samples);
        row.mean = format_double(score.percent / 100);
        write_row(row);
      }
    }
  }

 private:
  void set_variant(const analysis::RunSummary& run, const eval::VariantRecord& v) {
    front_ = {run.info.run.name,
              v.name,
              v.model,
              v.position,
              csv_number(v.rope_base),
              v.scaling,
              csv_number(v.factor),
              std::to_string(v.claimed_context),
              csv_number(v.trained_context)};
  }

  static std::string censored_word(analysis::Censoring kind) {
    return kind == analysis::Censoring::kRight ? "right" : kind == analysis::Censoring::kLeft ? "left" : "none";
  }

  void write_variant(const analysis::RunSummary& run, const analysis::VariantSummary& variant) {
    if (run.shows_mean()) write_effective("mean", variant.mean);
    write_points("length", "mean", variant.mean_curve);
    for (std::size_t t = 0; t < run.tasks.size(); ++t) {
      if (run.shows_task(t)) write_effective(run.tasks[t].label, variant.tasks[t].effective);
      write_points("length", run.tasks[t].label, variant.tasks[t].curve);
      write_points("cell", run.tasks[t].label, variant.tasks[t].cells);
    }
    for (const eval::CellRecord& cell : variant.unbuilt) {
      CsvRow row;
      row.record = "unbuilt";
      row.task = cell.task.variant == task::TaskVariant::kBalanced ? cell.task.name : cell.task.full();
      row.length = std::to_string(cell.length_tokens);
      if (cell.depth_bp) row.depth = format_depth(*cell.depth_bp);
      row.status = std::string(eval::to_string(cell.status));
      row.detail = cell.detail;
      write_row(row);
    }
  }

  void write_points(const char* record, const std::string& task, const std::vector<analysis::ScorePoint>& points) {
    for (const analysis::ScorePoint& point : points) {
      CsvRow row;
      row.record = record;
      row.task = task;
      row.length = std::to_string(point.length_tokens);
      if (point.depth_bp) row.depth = format_depth(*point.depth_bp);
      row.n_samples = std::to_string(point.n_samples);
      row.n_values = std::to_string(point.n_values);
      row.n_failed = std::to_string(point.n_failed);
      row.mean = csv_number(point.mean);
      row.low = csv_number(point.low);
      row.high = csv_number(point.high);
      row.estimator = std::string(analysis::to_string(point.estimator));
      write_row(row);
    }
  }

  void write_effective(const std::string& task, const analysis::EffectiveContext& effective) {
    write_rule(task, "absolute", effective.absolute, effective.absolute_low, effective.absolute_high);
    write_rule(task, "relative", effective.relative, effective.relative_low, effective.relative_high);
  }

  void write_rule(const std::string& task, const char* rule, const analysis::EffectiveValue& value,
                  const std::optional<analysis::EffectiveValue>& low,
                  const std::optional<analysis::EffectiveValue>& high) {
    CsvRow row;
    row.record = "effective";
    row.task = task;
    row.rule = rule;
    row.tokens = csv_number(value.tokens);
    row.censored = censored_word(value.kind);
    row.tokens_low = csv_tokens(low);
    row.tokens_high = csv_tokens(high);
    write_row(row);
  }

  void write_row(const CsvRow& row) {
    std::vector<std::string> fields = {row.record};
    fields.insert(fields.end(), front_.begin(), front_.end());
    for (const std::string* field : {&row.task, &row.length, &row.depth, &row.n_samples, &row.n_values, &row.n_failed,
                                     &row.mean, &row.low, &row.high, &row.estimator, &row.rule, &row.tokens,
                                     &row.censored, &row.tokens_low, &row.tokens_high, &row.status, &row.detail}) {
      fields.push_back(*field);
    }
    for (std::string& field : fields) field = csv_field(field);
    out_ << join(fields, ",") << "\n";
  }

  std::ostream& out_;
  std::vector<std::string> front_;
};

void write_csv(const store::ResultReader& results, const ReportOptions& options, std::ostream& out) {
  CsvWriter writer(out);
  for (const analysis::RunSummary& run : load_runs(results, options)) writer.write_run(run);
  for (const store::ImportedSource& source : results.imports())
    writer.write_imported(analysis::summarise_import(source));
}

}  // namespace

ReportEntry entries::csv_entry() {
  return {"csv", "one flat table of cells, lengths and effective lengths", "report.csv", &write_csv};
}

}  // namespace fathom::reports
