// The report in a terminal: the summary table, small curves and depth grids.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <ostream>

#include "harness/core/text_util.h"
#include "reports/format.h"
#include "reports/imported.h"
#include "reports/reports.h"
#include "reports/tables.h"

namespace fathom::reports {
namespace {

constexpr int kLeastNameColumns = 12;
constexpr int kMostNameColumns = 40;
/// More depth grids than this are left to the page.
constexpr std::size_t kMaxGrids = 24;

/// A score as one of eight block heights; colour by the same scale.
struct ScoreGlyph {
  std::string_view block;
  int colour;  ///< xterm-256, from dark blue to yellow
};

ScoreGlyph score_glyph(double fraction) {
  static constexpr ScoreGlyph kGlyphs[] = {{"▁", 55}, {"▂", 61},  {"▃", 67},  {"▄", 73},
                                           {"▅", 79}, {"▆", 114}, {"▇", 149}, {"█", 184}};
  const int step = std::clamp(static_cast<int>(fraction * 8), 0, 7);
  return kGlyphs[step];
}

/// Headings, wrapped paragraphs and tables.
class TerminalText {
 public:
  TerminalText(const ReportOptions& options, std::ostream& out) : options_(options), out_(out) {}

  std::string painted(std::string_view text, const std::string& code) const {
    if (!options_.colour) return std::string(text);
    return "\x1b[" + code + "m" + std::string(text) + "\x1b[0m";
  }

  void heading(const std::string& text) { out_ << painted(text, "1") << "\n"; }

  /// Wrapped at blanks.
  void paragraph(const std::string& text, const std::string& indent = "") {
    std::string line = indent;
    bool fresh = true;
    for (const std::string& word : split(text, ' ')) {
      if (!fresh && display_width(line) + 1 + display_width(word) > options_.terminal_columns) {
        out_ << line << "\n";
        line = std::string(static_cast<std::size_t>(display_width(indent)), ' ');
        fresh = true;
      }
      if (!fresh) line += ' ';
      line += word;
      fresh = false;
    }
    out_ << line << "\n";
  }

  /// Columns get what their widest text needs; the widest left-aligned ones give way where the terminal is too narrow.
  std::vector<int> column_widths(const Table& table) const {
    std::vector<int> widths;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      int width = display_width(table.columns[c].heading);
      for (const auto& row : table.rows) width = std::max(width, display_width(row[c].text));
      widths.push_back(width);
    }
    const auto total = [&] {
      int sum = 2 * (static_cast<int>(widths.size()) - 1);
      for (const int width : widths) sum += width;
      return sum;
    };
    while (total() > options_.terminal_columns) {
      int* widest = nullptr;
      for (std::size_t c = 0; c < widths.size(); ++c) {
        if (table.columns[c].align == Align::kLeft && (widest == nullptr || widths[c] > *widest)) widest = &widths[c];
      }
      if (widest == nullptr || *widest <= kLeastNameColumns) break;
      --*widest;
    }
    return widths;
  }

  static Table picked_columns(const Table& full, const std::vector<std::size_t>& columns) {
    Table table;
    for (const std::size_t c : columns) table.columns.push_back(full.columns[c]);
    for (const auto& row : full.rows) {
      std::vector<Cell> picked;
      picked.reserve(columns.size());
      for (const std::size_t c : columns) picked.push_back(row[c]);
      table.rows.push_back(std::move(picked));
    }
    return table;
  }

  bool cuts_first_column(const Table& full, const std::vector<std::size_t>& columns) const {
    const int width = column_widths(picked_columns(full, columns)).front();
    return std::any_of(full.rows.begin(), full.rows.end(),
                       [&](const auto& row) { return display_width(row.front().text) > width; });
  }

  /// \param columns  which columns of the table, in order; empty = all.
  void write_table(const Table& full, const std::vector<std::size_t>& columns) {
    const Table table = columns.empty() ? full : picked_columns(full, columns);
    const std::vector<int> widths = column_widths(table);
    const auto fitted = [&](std::size_t c, const std::string& text) {
      return table.columns[c].align == Align::kRight ? fit_right(text, widths[c]) : fit_left(text, widths[c]);
    };
    std::vector<std::string> parts;
    for (std::size_t c = 0; c < widths.size(); ++c) parts.push_back(fitted(c, table.columns[c].heading));
    line(painted(join(parts, "  "), "2"));
    for (const auto& row : table.rows) {
      parts.clear();
      for (std::size_t c = 0; c < widths.size(); ++c) parts.push_back(fitted(c, row[c].text));
      line(join(parts, "  "));
    }
    out_ << "\n";
  }

  /// Without the blanks that pad the last column.
  void line(std::string text) {
    while (!text.empty() && text.back() == ' ') text.pop_back();
    out_ << text << "\n";
  }

 protected:
  const ReportOptions& options_;
  std::ostream& out_;
};

class TerminalWriter : private TerminalText {
 public:
  TerminalWriter(const TableSource& source, const ReportOptions& options, std::ostream& out)
      : TerminalText(options, out), source_(source), names_(variant_names(source.run)) {}

  void write() {
    const analysis::RunSummary& run = source_.run;
    const Labels& l = source_.labels;
    heading(fmt::format("{}: {}", l("title"), visible_text(run.info.run.name)));
    if (run.info.finished_at.empty()) paragraph(l("unfinished"));
    out_ << "\n";
    if (!run.variants.empty()) write_summary();
    if (run.n_values + run.n_failed == 0) {
      paragraph(l("no_results"));
      out_ << "\n";
    } else {
      if (run.variants.size() == 1 && run.tasks.size() > 1) {
        heading(l("by_task"));
        write_by_task();
      }
      write_curves();
      write_grids();
    }
    const Table controls = control_table(source_);
    if (!controls.rows.empty()) {
      heading(l("controls") + ", %");
      write_table(controls, {});
    }
    const Table unbuilt = unbuilt_table(source_);
    if (!unbuilt.rows.empty()) {
      heading(l("unbuilt"));
      write_table(unbuilt, {});
    }
  }

 private:
  static DistinctNames variant_names(const analysis::RunSummary& run) {
    std::vector<std::string> names;
    for (const analysis::VariantSummary& variant : run.variants) names.push_back(visible_text(variant.record.name));
    return distinct_names(names);
  }

  /// Of a part in which names stand without the words that all of them share.
  void part_heading(const std::string& text) {
    heading(names_.shared.empty() ? text + ", %" : fmt::format("{}, % ({})", text, names_.shared));
  }

  void write_summary() {
    // Variant, claimed, trained, effective, interval, relative, interval, share of trained, mean.
    const Table summary = summary_table(source_);
    const std::vector<std::size_t> all = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    // Names cut short may look alike; the relative rule gives way to them and is left to the page.
    write_table(summary, cuts_first_column(summary, all) ? std::vector<std::size_t>{0, 1, 2, 3, 4, 7, 8} : all);
    if (!source_.run.headline_tasks.empty()) paragraph(summary.caption);
    paragraph(with_settings(source_, "rules"));
    const std::vector<std::string> notes = summary_notes(source_);
    for (const std::string& note : notes) paragraph(note, "- ");
    out_ << "\n";
  }

  void write_by_task() {
    const Table table = effective_by_task_table(source_);
    std::vector<std::size_t> columns(table.columns.size());
    std::iota(columns.begin(), columns.end(), std::size_t{0});
    // Names cut short may look alike: what is said elsewhere gives way.
    if (cuts_first_column(table, columns)) {
      const std::vector<std::string> elsewhere = {source_.labels("claimed"), source_.labels("interval"),
                                                  source_.labels("remark")};
      const auto said = [&](std::size_t c) {
        return std::find(elsewhere.begin(), elsewhere.end(), table.columns[c].heading) != elsewhere.end();
      };
      columns.erase(std::remove_if(columns.begin(), columns.end(), said), columns.end());
    }
    write_table(table, columns);
  }

  void write_curves() {
    const analysis::RunSummary& run = source_.run;
    part_heading(source_.labels("curves"));
    if (headline_has_curve(source_)) {
      write_curve(
          headline_name(source_), [](const analysis::VariantSummary& v) -> const auto& { return v.mean_curve; });
    }
    for (std::size_t t = 0; t < run.tasks.size(); ++t) {
      write_curve(
          visible_text(run.tasks[t].label), [t](const analysis::VariantSummary& v) -> const auto& {
            return v.tasks[t].curve;
          });
    }
  }

  /// A row a variant: its name, a spark line, and the scores by length.
  template <typename CurveOf>
  void write_curve(const std::string& title, CurveOf&& curve_of) {
    std::vector<std::int64_t> lengths;
    for (const std::int64_t length : source_.run.lengths) {
      for (const analysis::VariantSummary& variant : source_.run.variants) {
        const auto& curve = curve_of(variant);
        if (std::any_of(curve.begin(), curve.end(), [&](const auto& p) { return p.length_tokens == length; })) {
          lengths.push_back(length);
          break;
        }
      }
    }
    if (lengths.empty()) return;
    constexpr int kNumberColumns = 5;
    const int n_lengths = static_cast<int>(lengths.size());
    // Too many lengths for the terminal: the spark line stays whole, the numbers stop.
    const int n_numbers =
        std::min(n_lengths, (options_.terminal_columns - kLeastNameColumns - 2 - n_lengths) / (kNumberColumns + 1));
    const int name_columns =
        std::clamp(options_.terminal_columns - 2 - n_lengths - std::max(0, n_numbers) * (kNumberColumns + 1),
                   kLeastNameColumns, widest_name(title));
    std::string header = fit_left(title, name_columns) + "  " + std::string(static_cast<std::size_t>(n_lengths), ' ');
    for (int i = 0; i < n_numbers; ++i)
      header += " " + fit_right(format_tokens_short(lengths[static_cast<std::size_t>(i)]), kNumberColumns);
    line(painted(header, "2"));
    for (std::size_t v = 0; v < names_.names.size(); ++v) {
      std::string spark;
      std::string numbers;
      for (int i = 0; i < n_lengths; ++i) {
        const auto& curve = curve_of(source_.run.variants[v]);
        const auto found = std::find_if(curve.begin(), curve.end(), [&](const auto& p) {
          return p.length_tokens == lengths[static_cast<std::size_t>(i)];
        });
        const bool known = found != curve.end() && found->mean;
        spark += known ? painted_block(*found->mean) : "·";
        if (i < n_numbers) {
          const std::string text = known ? format_percent(*found->mean, found->n_values) : std::string(kNothing);
          numbers.append(1, ' ').append(fit_right(text, kNumberColumns));
        }
      }
      line(fmt::format("{}  {}{}", fit_left(names_.names[v], name_columns), spark, numbers));
    }
    out_ << "\n";
  }

  int widest_name(const std::string& title) const {
    int width = std::max(kLeastNameColumns, display_width(title));
    for (const std::string& name : names_.names) width = std::max(width, display_width(name));
    return std::min(width, kMostNameColumns);
  }

  std::string painted_block(double fraction) const {
    const ScoreGlyph glyph = score_glyph(fraction);
    return painted(glyph.block, fmt::format("38;5;{}", glyph.colour));
  }

  /// Depth grids, as many side by side as fit.
  void write_grids() {
    std::vector<std::vector<std::string>> blocks;
    int block_columns = 0;
    for (std::size_t t = 0; t < source_.run.tasks.size(); ++t) {
      for (std::size_t v = 0; v < source_.run.variants.size(); ++v) {
        if (!source_.run.variants[v].tasks[t].sweeps_depth) continue;
        blocks.push_back(grid_block(v, depth_table(source_, v, t)));
        for (const std::string& text : blocks.back()) block_columns = std::max(block_columns, display_width(text));
      }
    }
    if (blocks.empty()) return;
    part_heading(source_.labels("heatmaps"));
    if (blocks.size() > kMaxGrids) {
      paragraph(replace_all(source_.labels("grids_elsewhere"), "{n}", std::to_string(blocks.size())));
      out_ << "\n";
      return;
    }
    constexpr int kGap = 3;
    block_columns = std::min(block_columns, options_.terminal_columns);
    const auto per_row =
        static_cast<std::size_t>(std::max(1, (options_.terminal_columns + kGap) / (block_columns + kGap)));
    for (std::size_t first = 0; first < blocks.size(); first += per_row) {
      const std::size_t last = std::min(first + per_row, blocks.size());
      std::size_t n_lines = 0;
      for (std::size_t b = first; b < last; ++b) n_lines = std::max(n_lines, blocks[b].size());
      for (std::size_t i = 0; i < n_lines; ++i) {
        std::string text;
        for (std::size_t b = first; b < last; ++b) {
          text += fit_left(i < blocks[b].size() ? blocks[b][i] : "", block_columns) + std::string(kGap, ' ');
        }
        line(text);
      }
      out_ << "\n";
    }
  }

  /// Two lines of title, the lengths, and a row a depth.
  std::vector<std::string> grid_block(std::size_t variant, const Table& table) const {
    constexpr int kScoreColumns = 5;
    const int width = std::max(20, kScoreColumns * static_cast<int>(table.columns.size()));
    const auto dot = table.caption.find(" · ");
    std::vector<std::string> lines = {fit_left(names_.names[variant], width),
                                      fit_left(table.caption.substr(dot + 4), width)};
    std::string header;
    for (const Column& column : table.columns) {
      header += fit_right(&column == &table.columns.front() ? "" : column.heading, kScoreColumns);
    }
    lines.push_back(header);
    for (const auto& row : table.rows) {
      std::string text;
      for (const Cell& cell : row) text += fit_right(cell.text, kScoreColumns);
      lines.push_back(text);
    }
    return lines;
  }

  const TableSource& source_;
  const DistinctNames names_;
};

void write_terminal_imports(const store::ResultReader& results, const Labels& l, TerminalText text) {
  for (const ImportedSection& section : imported_sections(results, l)) {
    text.heading(fmt::format("{}: {}", l("imported"), section.table.caption));
    std::vector<std::size_t> columns(section.table.columns.size() - 3);  // the last are left to the page
    for (std::size_t c = 0; c < columns.size(); ++c) columns[c] = c;
    text.write_table(section.table, columns);
    if (!section.notes.empty()) text.paragraph(section.notes.front());
    text.line("");
  }
}

void write_terminal(const store::ResultReader& results, const ReportOptions& options, std::ostream& out) {
  const Labels labels(options.language);
  const std::vector<analysis::RunSummary> runs = load_runs(results, options);
  if (runs.empty()) out << labels("no_runs") << "\n";
  for (const analysis::RunSummary& run : runs)
    TerminalWriter({run, labels, options.show_timings}, options, out).write();
  write_terminal_imports(results, labels, {options, out});
}

}  // namespace

ReportEntry entries::terminal_entry() {
  return {"terminal", "summary table, small curves and depth grids as text", "report.txt", &write_terminal};
}

}  // namespace fathom::reports
