// The report as Markdown tables, for issues and repositories.

#include <fmt/format.h>

#include <ostream>

#include "harness/core/text_util.h"
#include "reports/format.h"
#include "reports/imported.h"
#include "reports/quality_tables.h"
#include "reports/reports.h"
#include "reports/tables.h"
#include "reports/theory_tables.h"
#include "reports/theta_sweep.h"

namespace fathom::reports {
namespace {

void write_markdown_table(const Table& table, std::ostream& out) {
  out << "|";
  for (const Column& column : table.columns) out << " " << escape_markdown(column.heading) << " |";
  out << "\n|";
  for (const Column& column : table.columns) out << (column.align == Align::kRight ? " ---: |" : " --- |");
  out << "\n";
  for (const auto& row : table.rows) {
    out << "|";
    for (const Cell& cell : row) {
      out << " " << escape_markdown(cell.text);
      if (!cell.detail.empty()) out << " (" << escape_markdown(cell.detail) << ")";
      out << " |";
    }
    out << "\n";
  }
  out << "\n";
}

void write_markdown_section(const std::string& heading, const Table& table, std::ostream& out) {
  if (table.rows.empty()) return;
  out << "## " << heading << "\n\n";
  if (!table.caption.empty() && table.caption != heading) out << escape_markdown(table.caption) << "\n\n";
  write_markdown_table(table, out);
}

/// A fence that no line of the text can close.
std::string code_fence(const std::string& text) {
  std::string fence = "```";
  while (text.find(fence) != std::string::npos) fence += '`';
  return fence;
}

void write_markdown_curves(const TableSource& source, std::ostream& out) {
  const Labels& l = source.labels;
  out << "## " << l("curves") << "\n\n" << escape_markdown(with_settings(source, "curves_caption")) << "\n\n";
  const auto write = [&](const Table& table) {
    if (table.columns.size() < 2) return;
    out << "### " << escape_markdown(table.caption) << "\n\n";
    write_markdown_table(table, out);
  };
  if (headline_has_curve(source)) write(mean_curve_table(source));
  for (std::size_t t = 0; t < source.run.tasks.size(); ++t) write(task_curve_table(source, t));
}

void write_markdown_depths(const TableSource& source, std::ostream& out) {
  bool first = true;
  for (std::size_t v = 0; v < source.run.variants.size(); ++v) {
    for (std::size_t t = 0; t < source.run.tasks.size(); ++t) {
      if (!source.run.variants[v].tasks[t].sweeps_depth) continue;
      if (first) out << "## " << source.labels("heatmaps") << "\n\n";
      first = false;
      const Table table = depth_table(source, v, t);
      out << "### " << escape_markdown(table.caption) << "\n\n";
      write_markdown_table(table, out);
    }
  }
}

void write_markdown_run(const analysis::RunSummary& run, const ReportOptions& options, const Labels& l,
                        std::ostream& out) {
  const TableSource source{run, l, options.show_timings};
  out << "# " << l("title") << ": " << escape_markdown(visible_text(run.info.run.name)) << "\n\n";
  if (run.info.finished_at.empty()) out << "> " << l("unfinished") << "\n\n";
  write_markdown_section(l("summary"), summary_table(source), out);
  if (!run.variants.empty()) out << escape_markdown(with_settings(source, "rules") + " " + l("weights")) << "\n\n";
  for (const std::string& note : summary_notes(source)) out << "- " << escape_markdown(note) << "\n";
  if (!summary_notes(source).empty()) out << "\n";
  if (run.n_values + run.n_failed == 0) {
    out << l("no_results") << "\n\n";
  } else {
    if (run.tasks.size() > 1) write_markdown_section(l("by_task"), effective_by_task_table(source), out);
    write_markdown_curves(source, out);
    write_markdown_depths(source, out);
  }
  write_markdown_section(l("theta"), theta_table(source), out);
  write_markdown_section(l("matrix"), matrix_table(source), out);
  write_markdown_section(l("theory_title"), theory_table(source), out);
  write_markdown_section(l("scorecard"), scorecard_table(source), out);
  write_markdown_section(l("unbuilt"), unbuilt_table(source), out);
  write_markdown_section(l("other_scores"), other_scores_table(source), out);
  write_markdown_section(l("guesses"), guess_table(source), out);
  write_markdown_section(l("position_bits"), position_bits_table(source), out);
  write_markdown_section(l("corrected"), corrected_table(source), out);
  write_markdown_section(l("controls"), control_table(source), out);
  write_markdown_section(l("replies"), reply_table(source), out);
  write_markdown_section(l("fit"), fit_table(source), out);
  write_markdown_section(l("costs"), cost_table(source), out);
  write_markdown_section(l("seeds"), seed_table(source), out);
  write_markdown_section(l("training"), training_table(source), out);
  write_markdown_section(l("provenance"), provenance_table(source), out);
  const std::string fence = code_fence(run.info.run.canonical_config);
  out << "## " << l("config") << "\n\n" << fence << "ini\n" << run.info.run.canonical_config;
  if (!ends_with(run.info.run.canonical_config, "\n")) out << "\n";
  out << fence << "\n";
}

void write_markdown_imports(const store::ResultReader& results, const Labels& l, std::ostream& out) {
  const std::vector<ImportedSection> sections = imported_sections(results, l);
  if (sections.empty()) return;
  out << "\n# " << l("imported") << "\n\n" << escape_markdown(l("imported_caption")) << "\n\n";
  for (const ImportedSection& section : sections) {
    out << "## " << escape_markdown(section.table.caption) << "\n\n";
    write_markdown_table(section.table, out);
    for (const std::string& note : section.notes) out << "- " << escape_markdown(note) << "\n";
    out << "\n";
  }
}

void write_markdown(const store::ResultReader& results, const ReportOptions& options, std::ostream& out) {
  const Labels labels(options.language);
  const std::vector<analysis::RunSummary> runs = load_runs(results, options);
  if (runs.empty()) out << "# " << labels("title") << "\n\n" << labels("no_runs") << "\n";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (i > 0) out << "\n";
    write_markdown_run(runs[i], options, labels, out);
  }
  write_markdown_imports(results, labels, out);
}

}  // namespace

ReportEntry entries::markdown_entry() {
  return {"markdown", "the tables as Markdown", "report.md", &write_markdown};
}

}  // namespace fathom::reports
