#include "harness/analysis/history.h"

#include <algorithm>
#include <cmath>

#include "harness/analysis/change_points.h"

namespace fathom::analysis {
namespace {

/// Enough for the two ends of an interval on a grid of a few lengths; a history has many runs.
constexpr int kHistoryResamples = 500;

HistoryPoint point_of(const RunSummary& run, const VariantSummary& variant) {
  HistoryPoint point;
  point.run = run.info.run.name;
  point.started_at = run.info.run.started_at;
  point.source_revision = run.info.run.source_revision;
  point.absolute = variant.mean.absolute;
  point.relative = variant.mean.relative;
  point.absolute_low = variant.mean.absolute_low;
  point.absolute_high = variant.mean.absolute_high;
  point.relative_low = variant.mean.relative_low;
  point.relative_high = variant.mean.relative_high;
  point.average = variant.mean.average;
  return point;
}

/// log2 of the tokens; half the first tested length where not even that passes.
std::optional<double> log_tokens(const EffectiveValue& value) {
  if (value.tokens) return std::log2(static_cast<double>(*value.tokens));
  if (value.kind == Censoring::kLeft && value.first_tested)
    return std::log2(static_cast<double>(*value.first_tested)) - 1;
  return std::nullopt;
}

/// Change points of the values that are there, as indices into the series.
template <typename ValueOf>
std::vector<std::size_t> changes_of(const HistorySeries& series, std::string_view what, ValueOf&& value_of) {
  std::vector<double> values;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < series.points.size(); ++i) {
    const std::optional<double> value = value_of(series.points[i]);
    if (!value) continue;
    values.push_back(*value);
    places.push_back(i);
  }
  std::vector<std::size_t> out;
  const RngKey key = RngKey("fathom/1|history").child(what);
  for (const std::size_t k : change_points(values, key)) out.push_back(places[k]);
  return out;
}

}  // namespace

void mark_changes(HistorySeries& series) {
  const bool any_absolute = std::any_of(series.points.begin(), series.points.end(),
                                        [](const HistoryPoint& point) { return point.absolute.tokens.has_value(); });
  const auto effective = changes_of(series, "effective", [&](const HistoryPoint& point) {
    return log_tokens(any_absolute ? point.absolute : point.relative);
  });
  for (const std::size_t i : effective) series.points[i].effective_changed = true;
  for (const std::size_t i : changes_of(series, "average", [](const HistoryPoint& point) { return point.average; })) {
    series.points[i].average_changed = true;
  }
}

std::vector<HistorySeries> run_history(const store::ResultReader& results, const std::vector<std::string>& runs,
                                       const std::function<SummarySettings(const eval::RunRecord&)>& settings_of) {
  std::vector<HistorySeries> out;
  std::vector<std::pair<std::string, std::string>> order;  // start, name
  for (const std::string& name : runs.empty() ? results.run_names() : runs) {
    order.emplace_back(results.run(name).run.started_at, name);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [started, name] : order) {
    SummarySettings settings = settings_of ? settings_of(results.run(name).run) : SummarySettings{};
    settings.resamples = std::min(settings.resamples, kHistoryResamples);
    settings.max_misses_per_cell = 0;
    const RunSummary run = summarise_run(results, name, settings);
    for (const VariantSummary& variant : run.variants) {
      auto series = std::find_if(out.begin(), out.end(),
                                 [&](const HistorySeries& one) { return one.variant == variant.record.name; });
      if (series == out.end()) series = out.insert(out.end(), HistorySeries{variant.record.name, {}});
      series->points.push_back(point_of(run, variant));
    }
  }
  for (HistorySeries& series : out) mark_changes(series);
  return out;
}

}  // namespace fathom::analysis
