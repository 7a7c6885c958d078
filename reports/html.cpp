// One self-contained page: the templates of reports/templates filled with tables and charts.

#include <fmt/format.h>

#include <algorithm>
#include <mustache.hpp>
#include <nlohmann/json.hpp>
#include <ostream>

#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "reports/charts.h"
#include "reports/embedded.h"
#include "reports/format.h"
#include "reports/imported.h"
#include "reports/miss_tables.h"
#include "reports/quality_tables.h"
#include "reports/reports.h"
#include "reports/run_charts.h"
#include "reports/tables.h"
#include "reports/theory_tables.h"
#include "reports/theta_sweep.h"

namespace fathom::reports {
namespace {

using kainjow::mustache::data;
using kainjow::mustache::list;
using kainjow::mustache::object;

/// Tables longer than this start folded.
constexpr std::size_t kLongTableRows = 24;

/// A list that the templates can also ask for being empty (`has_NAME`).
data list_data(list&& items) {
  return data(items);
}

/// Room for the details of each column, so that the numbers before them stay in line; 0 = the column has none.
std::vector<int> detail_widths(const Table& table) {
  std::vector<int> widths(table.columns.size(), 0);
  for (const auto& row : table.rows) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], display_width(row[c].detail));
  }
  return widths;
}

data table_data(const Table& table, const std::string& css, const std::string& name) {
  object out;
  out["css"] = css;
  out["name"] = name;
  if (!table.caption.empty() && css != "summary") out["caption"] = object{{"caption", table.caption}};
  list columns;
  for (const Column& column : table.columns) {
    object one{{"heading", column.heading}};
    if (column.align == Align::kRight) one["right"] = true;
    columns.push_back(one);
  }
  out["columns"] = list_data(std::move(columns));
  const std::vector<int> detail_columns = detail_widths(table);
  list rows;
  for (const auto& row : table.rows) {
    list cells;
    object head;
    for (std::size_t c = 0; c < row.size(); ++c) {
      object cell{{"text", row[c].text}, {"label", table.columns[c].heading}};
      // A false value hides the one of the same name that an outer section may have.
      cell["right"] = table.columns[c].align == Align::kRight;
      if (detail_columns[c] == 0) {
        cell["detail"] = false;
      } else {
        // A cell without details keeps their room, so that the numbers of a column stay in line.
        const bool blank = row[c].detail.empty();
        cell["detail"] = object{{"detail", blank ? "\u00a0" : row[c].detail},
                                {"columns", std::to_string(detail_columns[c])},
                                {"blank", blank}};
      }
      if (row[c].raw_html.empty()) {
        cell["raw"] = false;
      } else {
        cell["raw"] = object{{"raw", row[c].raw_html}};
      }
      if (c == 0) {
        head = cell;
      } else {
        cells.push_back(cell);
      }
    }
    rows.push_back(object{{"head", head}, {"cells", list_data(std::move(cells))}});
  }
  out["rows"] = list_data(std::move(rows));
  return out;
}

Table without_caption(Table table) {
  table.caption.clear();
  return table;
}

class HtmlRun {
 public:
  HtmlRun(const TableSource& source, std::size_t number)
      : source_(source), run_(source.run), l_(source.labels), id_(fmt::format("run{}", number + 1)) {}

  data build() {
    object out;
    out["id"] = id_;
    out["name"] = visible_text(run_.info.run.name);
    out["facts"] = facts();
    if (run_.info.finished_at.empty()) out["unfinished"] = true;
    const bool has_results = run_.n_values + run_.n_failed > 0;
    if (!run_.variants.empty()) add(out, "summary", l_("summary"), "summary", summary());
    if (!has_results) out["no_results"] = true;
    if (has_results && run_.tasks.size() > 1) {
      const Table by_task = effective_by_task_table(source_);
      add(out, "by_task", l_("by_task"), "by-task",
          object{{"table", table_data(without_caption(by_task), "", l_("by_task"))}, {"lead", by_task.caption}});
    }
    if (has_results) add(out, "curves", l_("curves"), "curves", curves());
    if (has_depths()) add(out, "heatmaps", l_("heatmaps"), "heatmaps", heat_maps());
    if (!theta_settings(run_).empty()) add(out, "theta", l_("theta"), "theta", theta());
    list plain;
    add_plain(plain, l_("matrix"), "matrix", matrix_table(source_));
    add_plain(plain, l_("theory_title"), "theory", theory_table(source_));
    add_plain(plain, l_("scorecard"), "scorecard", scorecard_table(source_));
    add_plain(plain, l_("unbuilt"), "unbuilt", unbuilt_table(source_));
    add_plain(plain, l_("other_scores"), "other-scores", other_scores_table(source_));
    add_plain(plain, l_("guesses"), "guesses", guess_table(source_));
    add_plain(plain, l_("position_bits"), "position-bits", position_bits_table(source_));
    add_plain(plain, l_("corrected"), "corrected", corrected_table(source_));
    add_plain(plain, l_("controls"), "controls", control_table(source_));
    add_plain(plain, l_("replies"), "replies", reply_table(source_));
    add_plain(plain, l_("fit"), "fit", fit_table(source_));
    add_plain(plain, l_("costs"), "costs", cost_table(source_));
    add_plain(plain, l_("seeds"), "seeds", seed_table(source_));
    add_plain(plain, l_("training"), "training", training_table(source_));
    out["plain"] = list_data(std::move(plain));
    if (!run_.misses.empty()) add(out, "misses", l_("misses"), "misses", misses());
    contents_.push_back(object{{"heading", l_("provenance")}, {"anchor", id_ + "-provenance"}});
    out["provenance"] = table_data(without_caption(provenance_table(source_)), "keys", l_("provenance"));
    if (!run_.info.run.canonical_config.empty()) {
      out["has_config"] = true;
      out["config"] = visible_lines(run_.info.run.canonical_config);
    }
    add_resolved(out);
    out["contents"] = list_data(std::move(contents_));
    return out;
  }

 private:
  void add(object& out, const std::string& name, const std::string& heading, const std::string& anchor,
           const object& section) {
    contents_.push_back(object{{"heading", heading}, {"anchor", id_ + "-" + anchor}});
    out[name] = section;
  }

  void add_plain(list& sections, const std::string& heading, const std::string& anchor, const Table& table) {
    if (table.rows.empty()) return;
    contents_.push_back(object{{"heading", heading}, {"anchor", id_ + "-" + anchor}});
    object section{{"heading", heading}, {"anchor", id_ + "-" + anchor}};
    if (table.caption != heading) section["lead"] = object{{"lead", table.caption}};
    const data filled = table_data(without_caption(table), "", heading);
    if (table.rows.size() > kLongTableRows) {
      section["long"] = object{{"summary", fmt::format("{} ({})", heading, table.rows.size())}, {"table", filled}};
    } else {
      section["short"] = object{{"table", filled}};
    }
    sections.push_back(section);
  }

  /// "1 task", "3 tasks".
  std::string counted(std::int64_t n, std::string_view one, std::string_view many) const {
    return n == 1 ? l_(one) : fmt::format("{} {}", format_count(n), l_(many));
  }

  list facts() const {
    list out;
    out.push_back(counted(static_cast<std::int64_t>(run_.variants.size()), "one_variant", "variants"));
    out.push_back(counted(static_cast<std::int64_t>(run_.tasks.size()), "one_task", "tasks"));
    if (!run_.lengths.empty()) {
      const std::string range = run_.lengths.size() == 1
                                    ? format_tokens(run_.lengths.front())
                                    : fmt::format("{}–{}", run_.lengths.front(), run_.lengths.back());
      out.push_back(fmt::format(
          "{} ({})", counted(static_cast<std::int64_t>(run_.lengths.size()), "one_length", "lengths"), range));
    }
    out.push_back(counted(run_.n_values, "one_score", "scores"));
    if (run_.n_failed > 0) out.push_back(fmt::format("{} {}", format_count(run_.n_failed), l_("failed")));
    if (source_.show_timings && !run_.info.run.started_at.empty()) out.push_back(run_.info.run.started_at);
    return out;
  }

  object summary() const {
    Table table = summary_table(source_);
    add_tracks(table);
    list notes;
    for (const std::string& note : summary_notes(source_)) notes.push_back(note);
    object out{{"table", table_data(table, "summary", l_("summary"))},
               {"summary_caption", table.caption},
               {"rules", with_settings(source_, "rules")}};
    if (!notes.empty()) out["has_notes"] = object{{"notes", list_data(std::move(notes))}};
    return out;
  }

  /// A drawing of each row after the effective value's interval.
  void add_tracks(Table& table) const {
    if (run_.lengths.empty()) return;
    constexpr std::size_t kAfterColumn = 4;
    const auto at = static_cast<std::ptrdiff_t>(kAfterColumn + 1);
    std::int64_t shortest = run_.lengths.front();
    std::int64_t longest = run_.lengths.back();
    for (const analysis::VariantSummary& variant : run_.variants) {
      longest = std::max({longest, variant.record.claimed_context, variant.record.trained_context.value_or(0)});
    }
    const std::string heading =
        fmt::format("{} ({}–{})", l_("range"), format_tokens_short(shortest), format_tokens_short(longest));
    table.columns.insert(table.columns.begin() + at, {heading, Align::kLeft});
    for (std::size_t v = 0; v < run_.variants.size(); ++v) {
      const analysis::VariantSummary& variant = run_.variants[v];
      Cell cell;
      cell.raw_html =
          track_svg({shortest, longest, variant.mean.absolute, variant.mean.absolute_low, variant.mean.absolute_high,
                     variant.record.trained_context, variant.record.claimed_context});
      table.rows[v].insert(table.rows[v].begin() + at, cell);
    }
  }

  object curves() const {
    list groups;
    for (std::size_t first = 0; first < run_.variants.size(); first += kMaxCurveSeries) {
      groups.push_back(curve_group(first, std::min(first + kMaxCurveSeries, run_.variants.size())));
    }
    list tables;
    if (headline_has_curve(source_))
      tables.push_back(table_data(mean_curve_table(source_), "", headline_name(source_)));
    for (std::size_t t = 0; t < run_.tasks.size(); ++t) {
      tables.push_back(table_data(task_curve_table(source_, t), "", visible_text(run_.tasks[t].label)));
    }
    return {{"lead", with_settings(source_, "curves_caption")},
            {"groups", list_data(std::move(groups))},
            {"tables", list_data(std::move(tables))}};
  }

  object curve_group(std::size_t first, std::size_t last) const {
    list legend;
    for (std::size_t v = first; v < last; ++v) {
      legend.push_back(
          object{{"name", visible_text(run_.variants[v].record.name)}, {"swatch", legend_swatch_svg(v - first)}});
    }
    list charts;
    const auto add_chart = [&](const std::string& title, const std::size_t* task) {
      charts.push_back(
          object{{"title", title}, {"svg", curve_chart_svg(run_curve_chart(source_, {first, last, task}))}});
    };
    if (headline_has_curve(source_)) add_chart(headline_name(source_), nullptr);
    for (std::size_t t = 0; t < run_.tasks.size(); ++t) add_chart(visible_text(run_.tasks[t].label), &t);
    return {{"series", list_data(std::move(legend))}, {"charts", list_data(std::move(charts))}};
  }

  bool has_depths() const {
    for (const analysis::VariantSummary& variant : run_.variants) {
      for (const analysis::TaskResult& task : variant.tasks) {
        if (task.sweeps_depth) return true;
      }
    }
    return false;
  }

  object heat_maps() const {
    list tasks;
    for (std::size_t t = 0; t < run_.tasks.size(); ++t) {
      list charts;
      list tables;
      const std::string title = visible_text(run_.tasks[t].label);
      for (std::size_t v = 0; v < run_.variants.size(); ++v) {
        const analysis::TaskResult& result = run_.variants[v].tasks[t];
        if (!result.sweeps_depth) continue;
        const std::string name = visible_text(run_.variants[v].record.name);
        charts.push_back(object{{"title", name}, {"svg", heat_map_svg(run_heat_map(source_, v, t))}});
        tables.push_back(table_data(depth_table(source_, v, t), "", name));
      }
      if (charts.empty()) continue;
      tasks.push_back(
          object{{"title", title}, {"charts", list_data(std::move(charts))}, {"tables", list_data(std::move(tables))}});
    }
    return {{"scale", heat_scale_svg()}, {"tasks", list_data(std::move(tasks))}};
  }

  object theta() const {
    list charts;
    for (const NamedThetaChart& one : theta_charts(source_)) {
      list legend;
      for (std::size_t s = 0; s < one.names.size(); ++s) {
        legend.push_back(object{{"name", visible_text(one.names[s])}, {"swatch", legend_swatch_svg(s)}});
      }
      charts.push_back(object{{"series", list_data(std::move(legend))}, {"svg", theta_chart_svg(one.chart)}});
    }
    return {{"lead", l_("theta_caption")},
            {"charts", list_data(std::move(charts))},
            {"table", table_data(without_caption(theta_table(source_)), "", l_("theta"))}};
  }

  object misses() const {
    list groups;
    for (const MissGroup& group : miss_groups(source_)) {
      groups.push_back(object{{"title", fmt::format("{} ({})", group.variant, group.table.rows.size())},
                              {"variant_name", group.variant},
                              {"table", table_data(group.table, "misses", group.variant)}});
    }
    return {{"lead", misses_lead(source_)}, {"filters", miss_filters()}, {"groups", list_data(std::move(groups))}};
  }

  object miss_filters() const {
    const auto options = [](const std::vector<std::string>& names) {
      return list_data(list(names.begin(), names.end()));
    };
    const MissChoices choices = miss_choices(source_);
    return {{"id", id_},
            {"search", l_("misses_search")},
            {"any", l_("misses_any")},
            {"shown_of", l_("misses_shown")},
            {"variant", l_("variant")},
            {"task", l_("task")},
            {"length", l_("length")},
            {"variants", options(choices.variants)},
            {"tasks", options(choices.tasks)},
            {"lengths", options(choices.lengths)}};
  }

  /// Control characters made visible, lines kept.
  static std::string visible_lines(const std::string& text) {
    std::vector<std::string> lines = split(text, '\n');
    for (std::string& line : lines) line = visible_text(line);
    return join(lines, "\n");
  }

  /// What the resolver warned of: a scaling that can be read in two ways, keys that nobody reads.
  static list resolver_warnings(const std::string& resolved_json) {
    list out;
    const auto json = nlohmann::json::parse(resolved_json, nullptr, false);
    if (!json.is_object() || !json.contains("warnings") || !json["warnings"].is_array()) return out;
    for (const auto& warning : json["warnings"]) {
      if (warning.is_string()) out.push_back(object{{"text", visible_text(warning.get<std::string>())}});
    }
    return out;
  }

  void add_resolved(object& out) const {
    list resolved;
    for (const analysis::VariantSummary& variant : run_.variants) {
      const eval::VariantRecord& record = variant.record;
      if (record.position_description.empty() && record.resolved_json.empty()) continue;
      resolved.push_back(object{{"name", visible_text(record.name)},
                                {"description", visible_text(record.position_description)},
                                {"warnings", list_data(resolver_warnings(record.resolved_json))},
                                {"json", visible_lines(record.resolved_json)}});
    }
    if (!resolved.empty()) out["has_resolved"] = object{{"resolved", list_data(std::move(resolved))}};
  }

  const TableSource& source_;
  const analysis::RunSummary& run_;
  const Labels& l_;
  std::string id_;
  list contents_;
};

void write_html(const store::ResultReader& results, const ReportOptions& options, std::ostream& out) {
  const Labels labels(options.language);
  const std::vector<analysis::RunSummary> runs = load_runs(results, options);
  object words;
  for (const auto& [key, text] : labels.all()) words[key] = text;
  list run_list;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    run_list.push_back(HtmlRun({runs[i], labels, options.show_timings}, i).build());
    names.push_back(visible_text(runs[i].info.run.name));
  }
  object page{
      {"lang", labels.language()},
      {"l", words},
      {"style", std::string(embedded_file("templates/style.css"))},
      {"page_title", names.empty() ? labels("title") : fmt::format("{}: {}", labels("title"), join(names, ", "))},
      {"runs", list_data(std::move(run_list))}};
  if (runs.empty()) page["no_runs"] = true;
  list imports;
  for (const ImportedSection& section : imported_sections(results, labels)) {
    list notes;
    for (const std::string& note : section.notes) notes.push_back(note);
    imports.push_back(object{{"title", section.table.caption},
                             {"table", table_data(without_caption(section.table), "imported", section.table.caption)},
                             {"notes", list_data(std::move(notes))}});
  }
  if (!imports.empty()) page["has_imports"] = object{{"imports", list_data(std::move(imports))}};
  const bool has_misses = std::any_of(runs.begin(), runs.end(), [](const auto& run) { return !run.misses.empty(); });
  if (has_misses) page["script"] = object{{"script", std::string(embedded_file("templates/misses.js"))}};
  page["table_partial"] =
      kainjow::mustache::partial([] { return std::string(embedded_file("templates/table.mustache")); });
  page["misses_partial"] =
      kainjow::mustache::partial([] { return std::string(embedded_file("templates/misses.mustache")); });
  kainjow::mustache::mustache page_template{std::string(embedded_file("templates/page.mustache"))};
  FATHOM_CHECK(page_template.is_valid(), "page.mustache: " + page_template.error_message());
  out << page_template.render(page);
}

}  // namespace

ReportEntry entries::html_entry() {
  return {"html", "one self-contained page with charts", "index.html", &write_html};
}

}  // namespace fathom::reports
