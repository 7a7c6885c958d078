#pragma once
// The tables of a report as plain text cells; each format writes them in its own way.

#include <string>
#include <vector>

#include "harness/analysis/run_summary.h"
#include "reports/labels.h"
#include "reports/report.h"

namespace fathom::reports {

enum class Align { kLeft, kRight };

struct Column {
  std::string heading;
  Align align = Align::kRight;
};

struct Cell {
  std::string text;
  std::string detail = {};    ///< said smaller, or in parentheses: "2K"
  std::string raw_html = {};  ///< a drawing for the page; other formats leave it out
};

struct Table {
  std::string caption = {};
  std::vector<Column> columns = {};
  std::vector<std::vector<Cell>> rows = {};  ///< each as long as `columns`; the first cell names the row
};

/// What a table is made of.
struct TableSource {
  const analysis::RunSummary& run;
  const Labels& labels;
  bool show_timings = true;
};

/// What the summary's effective context is of: "Mean over tasks", or the tasks that report.effective names.
std::string headline_name(const TableSource& source);
/// Whether the headline has curves of its own: not where it is that of one task.
bool headline_has_curve(const TableSource& source);
/// Claimed, trained, effective (absolute and relative) with intervals, one row a variant.
Table summary_table(const TableSource& source);
/// Effective context of each task asked for. Of several variants a matrix (absolute rule); of one a row a task, and one
/// of the mean: both rules, and beside them the scores at the shortest and the longest length, the score with the facts
/// alone and what a token of the right answer costs.
Table effective_by_task_table(const TableSource& source);
/// Score by length, one row a variant: of the mean over tasks, or of one task.
Table mean_curve_table(const TableSource& source);
Table task_curve_table(const TableSource& source, std::size_t task);
/// Score by depth (rows) and length (columns) of one variant and task.
Table depth_table(const TableSource& source, std::size_t variant, std::size_t task);
/// Cells that could not be built or run, with the reason, equal reasons of neighbouring variants in one row.
Table unbuilt_table(const TableSource& source);
/// Guess levels of each task by length, and blind chance.
Table guess_table(const TableSource& source);
/// Means of the graded and the other scorers by length, in each scorer's own unit.
Table other_scores_table(const TableSource& source);
/// Bits a token of running text by its position.
Table position_bits_table(const TableSource& source);
Table control_table(const TableSource& source);
/// Tokens, and with timings also seconds and memory, by variant and length.
Table cost_table(const TableSource& source);
Table training_table(const TableSource& source);
/// Key and value: versions, seed, hardware, fingerprint.
Table provenance_table(const TableSource& source);

/// Remarks on the effective values: gaps, non-monotone curves, lengths left out, unmastered models, zero cells.
std::vector<std::string> summary_notes(const TableSource& source);

/// A label with the run's {threshold} and number of {resamples} filled in, for example "rules".
std::string with_settings(const TableSource& source, std::string_view key);

/// Text of one point: "90 (82–95)", or "90 (n = 10)" where no interval can be given.
Cell score_cell(const analysis::ScorePoint& point);

}  // namespace fathom::reports
