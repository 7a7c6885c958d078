#include "reports/theta_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "harness/analysis/base_theory.h"
#include "harness/core/text_util.h"
#include "reports/charts.h"
#include "reports/format.h"
#include "reports/theory_tables.h"

namespace fathom::reports {
namespace {

/// Names of variants spell out what varies: "rope base=10000 yarn".
std::string name_without_base(const std::string& name) {
  std::vector<std::string> words;
  for (const std::string& word : split(name, ' ')) {
    if (!starts_with(word, "base=")) words.push_back(word);
  }
  return join(words, " ");
}

const eval::VariantRecord& record_of(const analysis::RunSummary& run, std::size_t variant) {
  return run.variants[variant].record;
}

/// What models of another base are mostly compared with; the smallest base where a sweep lacks it.
constexpr double kUsualBase = 10000;

const analysis::VariantSummary& reference_variant(const analysis::RunSummary& run, const ThetaSetting& setting) {
  for (const std::size_t v : setting.variants) {
    if (record_of(run, v).rope_base == kUsualBase) return run.variants[v];
  }
  return run.variants[setting.variants.front()];
}

/// The bases that theory names for the first setting's training and the longest tested length.
std::vector<ThetaMark> marks_of(const TableSource& source, const ThetaSetting& setting) {
  const Labels& l = source.labels;
  std::vector<ThetaMark> marks;
  const analysis::VariantSummary& reference = reference_variant(source.run, setting);
  if (const auto base = analysis::full_turn_base(reference.record.trained_context.value_or(0))) {
    marks.push_back({*base, fmt::format("T/2π {}", format_base(*base))});
  }
  if (const auto base = analysis::predict_reach(theory_input(source.run, reference)).critical_base) {
    marks.push_back({*base, fmt::format("{} {}", ascii_lower(l("critical_base")), format_base(*base))});
  }
  std::sort(marks.begin(), marks.end(), [](const ThetaMark& a, const ThetaMark& b) { return a.base < b.base; });
  return marks;
}

/// \param settings  at most kMaxCurveSeries; styles count from 0.
ThetaChart theta_chart_of(const TableSource& source, const std::vector<ThetaSetting>& settings) {
  const analysis::RunSummary& run = source.run;
  const Labels& l = source.labels;
  ThetaChart chart;
  chart.lengths = run.lengths;
  chart.base_label = l("rotation_base");
  chart.bound_label = l("theta_bound");
  chart.trained_label = ascii_lower(l("trained"));
  std::set<double> bases;
  std::set<std::int64_t> trained;
  std::set<std::size_t> channels;
  std::vector<std::string> names;
  for (const ThetaSetting& setting : settings) {
    names.push_back(visible_text(setting.name));
    ThetaChartSeries series;
    series.style = chart.series.size();
    for (const std::size_t v : setting.variants) {
      const analysis::VariantSummary& variant = run.variants[v];
      bases.insert(*variant.record.rope_base);
      if (variant.record.trained_context) trained.insert(*variant.record.trained_context);
      channels.insert(theory_input(run, variant).inv_freq.size());
      series.points.push_back(
          {*variant.record.rope_base, variant.mean.relative, variant.mean.relative_low, variant.mean.relative_high});
    }
    chart.series.push_back(std::move(series));
  }
  chart.bases.assign(bases.begin(), bases.end());
  chart.trained_marks.assign(trained.begin(), trained.end());
  if (!settings.empty()) chart.base_marks = marks_of(source, settings.front());
  // Rotations of different width have different bounds; one line would stand for none of them.
  if (channels.size() == 1 && !run.lengths.empty()) {
    const auto curve =
        analysis::base_bound_curve({static_cast<std::int64_t>(*channels.begin()), chart.bases, run.lengths.back()});
    for (const analysis::BaseBound& point : curve) chart.bound.emplace_back(point.base, point.tokens);
  }
  chart.description = fmt::format("{}: {}. {} ↓", l("theta_alt"), join(names, ", "), l("curve_numbers"));
  return chart;
}

}  // namespace

std::vector<ThetaSetting> theta_settings(const analysis::RunSummary& run) {
  std::map<std::string, std::vector<std::size_t>> by_name;
  for (std::size_t v = 0; v < run.variants.size(); ++v) {
    if (record_of(run, v).rope_base) by_name[name_without_base(record_of(run, v).name)].push_back(v);
  }
  std::vector<ThetaSetting> out;
  for (auto& [name, variants] : by_name) {
    std::stable_sort(variants.begin(), variants.end(), [&](std::size_t a, std::size_t b) {
      return *record_of(run, a).rope_base < *record_of(run, b).rope_base;
    });
    const bool sweeps = *record_of(run, variants.front()).rope_base < *record_of(run, variants.back()).rope_base;
    if (sweeps) out.push_back({name, std::move(variants)});
  }
  return out;
}

Table theta_table(const TableSource& source) {
  const Labels& l = source.labels;
  Table table;
  table.caption = l("theta_caption");
  table.columns = {{l("setting"), Align::kLeft}, {l("rotation_base")}, {l("trained")}, {l("measured")}, {l("interval")},
                   {l("theory_base_bound")},     {l("critical_base")}};
  for (const ThetaSetting& setting : theta_settings(source.run)) {
    for (const std::size_t v : setting.variants) {
      const analysis::VariantSummary& variant = source.run.variants[v];
      const eval::VariantRecord& record = variant.record;
      const analysis::TheoryPrediction theory = analysis::predict_reach(theory_input(source.run, variant));
      table.rows.push_back(
          {{visible_text(setting.name)},
           {format_base(*record.rope_base)},
           {record.trained_context ? format_tokens(*record.trained_context) : std::string(kNothing)},
           {format_effective_text(variant.mean.relative)},
           {format_effective_range(variant.mean.relative_low, variant.mean.relative_high)},
           {theory.base_bound ? format_count(std::llround(*theory.base_bound)) : std::string(kNothing)},
           {theory.critical_base ? format_base(*theory.critical_base) : std::string(kNothing)}});
    }
  }
  return table;
}

std::vector<NamedThetaChart> theta_charts(const TableSource& source) {
  std::vector<NamedThetaChart> out;
  const std::vector<ThetaSetting> settings = theta_settings(source.run);
  for (std::size_t first = 0; first < settings.size(); first += kMaxCurveSeries) {
    const auto begin = settings.begin() + static_cast<std::ptrdiff_t>(first);
    const std::size_t n = std::min(kMaxCurveSeries, settings.size() - first);
    const std::vector<ThetaSetting> some(begin, begin + static_cast<std::ptrdiff_t>(n));
    NamedThetaChart one;
    for (const ThetaSetting& setting : some) one.names.push_back(setting.name);
    one.chart = theta_chart_of(source, some);
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace fathom::reports
