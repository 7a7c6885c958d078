#include "reports/run_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/core/text_util.h"
#include "reports/embedded.h"
#include "reports/format.h"
#include "reports/theta_sweep.h"

namespace fathom::reports {
namespace {

using analysis::ScorePoint;

const std::vector<ScorePoint>& curve_of(const analysis::VariantSummary& variant, const std::size_t* task) {
  return task == nullptr ? variant.mean_curve : variant.tasks[*task].curve;
}

std::string chart_title(const TableSource& source, const std::size_t* task) {
  return task == nullptr ? headline_name(source) : visible_text(source.run.tasks[*task].label);
}

/// File names from any text: ASCII letters and digits, everything else one dash.
std::string file_word(const std::string& text) {
  std::string out;
  for (const char c : ascii_lower(text)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (plain) {
      out += c;
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out.empty() ? "chart" : out;
}

std::string quoted_csv(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  return "\"" + replace_all(text, "\"", "\"\"") + "\"";
}

std::string csv_share(const std::optional<double>& value) {
  return value ? format_double(*value) : std::string();
}

void add_csv_points(const std::string& variant, const std::vector<ScorePoint>& points, std::string& out) {
  for (const ScorePoint& point : points) {
    out += fmt::format("{},{},{},{},{},{},{}\n", quoted_csv(variant), point.length_tokens,
                       point.depth_bp ? format_depth(*point.depth_bp) : "", point.n_values, csv_share(point.mean),
                       csv_share(point.low), csv_share(point.high));
  }
}

/// A drawing of the page with the page's colours in it.
std::string standalone_svg(const std::string& svg) {
  if (svg.empty()) return svg;
  const std::size_t end = svg.find('>') + 1;
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + svg.substr(0, end) + "<style>" +
         std::string(embedded_file("templates/chart.css")) + "</style>" +
         "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>" + svg.substr(end) + "\n";
}

class ChartFileList {
 public:
  static constexpr const char* kScoreColumns = "variant,length,depth_percent,n,mean,low,high\n";

  void add(const std::string& name, const std::string& svg, const std::string& csv,
           const std::string& columns = kScoreColumns) {
    if (svg.empty()) return;
    std::string unique = name;
    for (int n = 2; !names_.insert(unique).second; ++n) unique = fmt::format("{}-{}", name, n);
    files.push_back({unique + ".svg", standalone_svg(svg)});
    files.push_back({unique + ".csv", columns + csv});
  }

  std::vector<ChartFile> files;

 private:
  std::set<std::string> names_;
};

void add_curves(const TableSource& source, const std::size_t* task, ChartFileList& out) {
  const auto& variants = source.run.variants;
  for (std::size_t first = 0; first < variants.size(); first += kMaxCurveSeries) {
    const std::size_t last = std::min(first + kMaxCurveSeries, variants.size());
    std::string csv;
    for (std::size_t v = first; v < last; ++v) {
      add_csv_points(variants[v].record.name, curve_of(variants[v], task), csv);
    }
    const std::string what = task == nullptr ? "mean" : file_word(source.run.tasks[*task].label);
    out.add(fmt::format("curve-{}-{}", what, first / kMaxCurveSeries + 1),
            curve_chart_svg(run_curve_chart(source, {first, last, task})), csv);
  }
}

/// Tokens of an effective value; 0 = below the first tested length; empty where nothing can be said.
std::string csv_effective(const std::optional<analysis::EffectiveValue>& value) {
  if (!value || value->kind == analysis::Censoring::kNone) return "";
  return std::to_string(value->tokens.value_or(0));
}

std::string_view csv_censored(const analysis::EffectiveValue& value) {
  switch (value.kind) {
    case analysis::Censoring::kLeft:
      return "left";
    case analysis::Censoring::kRight:
      return "right";
    case analysis::Censoring::kExact:
    case analysis::Censoring::kNone:
      break;
  }
  return "none";
}

void add_thetas(const TableSource& source, ChartFileList& out) {
  int number = 0;
  for (const NamedThetaChart& one : theta_charts(source)) {
    std::string csv;
    for (const ThetaChartSeries& series : one.chart.series) {
      for (const ThetaChartPoint& point : series.points) {
        csv += fmt::format("{},{},{},{},{},{}\n", quoted_csv(one.names[series.style]), format_double(point.base),
                           csv_effective(point.effective), csv_effective(point.low), csv_effective(point.high),
                           csv_censored(point.effective));
      }
    }
    for (const auto& [base, tokens] : one.chart.bound) {
      csv += fmt::format("B(m) < 0,{},{},,,\n", format_double(base), format_double(tokens));
    }
    out.add(fmt::format("theta-{}", ++number), theta_chart_svg(one.chart), csv,
            "setting,base,tokens,low,high,censored\n");
  }
}

}  // namespace

CurveChart run_curve_chart(const TableSource& source, const CurveRequest& request) {
  const Labels& l = source.labels;
  CurveChart chart;
  chart.lengths = source.run.lengths;
  chart.threshold_percent = source.run.settings.absolute_threshold;
  chart.trained_label = ascii_lower(l("trained"));
  chart.claimed_label = ascii_lower(l("claimed"));
  std::set<std::int64_t> trained;
  std::set<std::int64_t> claimed;
  std::vector<std::string> names;
  for (std::size_t v = request.first; v < request.last; ++v) {
    const analysis::VariantSummary& variant = source.run.variants[v];
    if (variant.record.trained_context) trained.insert(*variant.record.trained_context);
    if (variant.record.claimed_context > 0) claimed.insert(variant.record.claimed_context);
    names.push_back(visible_text(variant.record.name));
    chart.series.push_back({variant.record.name, v - request.first, &curve_of(variant, request.task)});
  }
  chart.trained_marks.assign(trained.begin(), trained.end());
  chart.claimed_marks.assign(claimed.begin(), claimed.end());
  chart.description = fmt::format("{}: {}. {}. {}", l("curve_alt"), chart_title(source, request.task),
                                  join(names, ", "), l("curve_numbers") + " ↓");
  return chart;
}

HeatMap run_heat_map(const TableSource& source, std::size_t variant, std::size_t task) {
  const Labels& l = source.labels;
  return {fmt::format("{}: {}, {}", l("heatmap_alt"), visible_text(source.run.variants[variant].record.name),
                      visible_text(source.run.tasks[task].label)),
          &source.run.variants[variant].tasks[task].cells, l("depth"), l("length")};
}

std::vector<ChartFile> chart_files(const TableSource& source) {
  ChartFileList out;
  if (headline_has_curve(source)) add_curves(source, nullptr, out);
  for (std::size_t t = 0; t < source.run.tasks.size(); ++t) add_curves(source, &t, out);
  for (std::size_t v = 0; v < source.run.variants.size(); ++v) {
    const analysis::VariantSummary& variant = source.run.variants[v];
    for (std::size_t t = 0; t < source.run.tasks.size(); ++t) {
      if (!variant.tasks[t].sweeps_depth) continue;
      std::string csv;
      add_csv_points(variant.record.name, variant.tasks[t].cells, csv);
      out.add(fmt::format("heatmap-{}-{}", file_word(variant.record.name), file_word(source.run.tasks[t].label)),
              heat_map_svg(run_heat_map(source, v, t)), csv);
    }
  }
  add_thetas(source, out);
  return std::move(out.files);
}

}  // namespace fathom::reports
