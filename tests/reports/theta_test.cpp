// The sweep over bases: which settings it has, its chart, its table and its place in every format.
#include "reports/theta_sweep.h"

#include <sstream>

#include "harness/store/result_store.h"
#include "reports/report.h"
#include "reports/run_charts.h"
#include "tests/support/catch.h"
#include "tests/support/made_up_run.h"
#include "tests/support/temp_folder.h"

namespace fathom::reports {
namespace {

using Catch::Matchers::ContainsSubstring;

class ThetaRun {
 public:
  explicit ThetaRun(const std::string& kind) {
    test::put_made_up_run(*store::open_store(folder_.file("theta.db")), "theta", test::made_up_sweep(kind));
    summary_ = analysis::summarise_run(*store::open_reader(folder_.file("theta.db")), "theta", {});
  }
  TableSource source() const { return {summary_, labels_, false}; }
  std::string report(const char* format) const {
    std::ostringstream out;
    registry().at(format).write(*store::open_reader(folder_.file("theta.db")), {}, out);
    return out.str();
  }

 private:
  test::TempFolder folder_;
  Labels labels_{"en"};
  analysis::RunSummary summary_;
};

analysis::EffectiveValue value_of(analysis::Censoring kind, std::int64_t tokens) {
  analysis::EffectiveValue value;
  value.kind = kind;
  value.first_tested = 128;
  if (kind != analysis::Censoring::kLeft) value.tokens = tokens;
  return value;
}

ThetaChart small_chart() {
  ThetaChart chart;
  chart.description = "by base";
  chart.lengths = {128, 256, 512};
  chart.bases = {100, 10000};
  chart.series = {{0,
                   {{100, value_of(analysis::Censoring::kLeft, 0), {}, {}},
                    {10000, value_of(analysis::Censoring::kRight, 512), value_of(analysis::Censoring::kExact, 256),
                     value_of(analysis::Censoring::kRight, 512)}}}};
  chart.bound = {{100, 60}, {1000, 200}, {10000, 5000}};
  chart.base_marks = {{41, "T/2π 41"}, {1e9, "critical base 1e9"}};
  chart.trained_marks = {256, 1 << 20};
  chart.base_label = "Base";
  chart.bound_label = "B(m) < 0";
  chart.trained_label = "trained";
  return chart;
}

}  // namespace

TEST_CASE("theta: settings are variants that differ in the base alone", "[reports][theta]") {
  const ThetaRun run("theta");
  const auto settings = theta_settings(run.source().run);
  REQUIRE(settings.size() == 2);
  CHECK(settings[0].name == "rope");
  CHECK(settings[1].name == "rope yarn");
  REQUIRE(settings[0].variants.size() == 4);
  CHECK(run.source().run.variants[settings[0].variants[0]].record.rope_base == std::optional<double>(100));
  CHECK(theta_settings(ThetaRun("").source().run).empty());
  CHECK(theta_charts(ThetaRun("one").source()).empty());
}

TEST_CASE("theta: the table sets measurement beside the bound and the critical base", "[reports][theta]") {
  const Table table = theta_table(ThetaRun("theta").source());
  REQUIRE(table.rows.size() == 8);
  CHECK(table.rows[1][1].text == "1000");
  // 1000^(ln(2048 / 2 pi) / ln(512 / 2 pi))
  CHECK(table.rows[1][6].text == "8813");
  CHECK(format_base(10000) == "10000");
  CHECK(format_base(1750000) == "1.75e6");
  CHECK(table.rows[0][5].text != table.rows[3][5].text);
  CHECK(theta_table(ThetaRun("small").source()).rows.empty());
}

TEST_CASE("theta: what is censored, out of range or beyond an end of an axis is drawn as such", "[reports][theta]") {
  const std::string svg = theta_chart_svg(small_chart());
  CHECK_THAT(svg, ContainsSubstring("aria-label=\"by base\"") && ContainsSubstring(">&lt;128</text>"));
  CHECK_THAT(svg, ContainsSubstring(">T/2π 41</text>") && ContainsSubstring(">critical base 1e9 →</text>"));
  // The bound is cut at the floor and at the ceiling, not drawn along them.
  CHECK_THAT(svg, ContainsSubstring("class=\"bound\"") && ContainsSubstring("B(m) &lt; 0"));
  CHECK_THAT(svg, ContainsSubstring("l0 whisker") && !ContainsSubstring("nan") && !ContainsSubstring("inf"));
  CHECK_THAT(svg, ContainsSubstring("trained 256") && !ContainsSubstring("1M"));
  ThetaChart chart = small_chart();
  chart.base_marks = {{1, "T/2π 1"}};
  CHECK_THAT(theta_chart_svg(chart), ContainsSubstring(">← T/2π 1</text>"));
  chart.lengths = {128};
  CHECK_THAT(theta_chart_svg(chart), !ContainsSubstring("nan") && !ContainsSubstring("inf"));
  chart.lengths.clear();
  CHECK(theta_chart_svg(chart).empty());
}

TEST_CASE("theta: the sweep stands on the page, in Markdown and as files", "[reports][theta]") {
  const ThetaRun run("theta");
  CHECK_THAT(run.report("html"), ContainsSubstring("<section id=\"run1-theta\">") &&
                                     ContainsSubstring("aria-label=\"Effective context in tokens against the base"));
  CHECK_THAT(run.report("markdown"), ContainsSubstring("## Effective context by base"));
  const std::vector<ChartFile> files = chart_files(run.source());
  REQUIRE(files.size() > 2);
  CHECK(files[files.size() - 2].name == "theta-1.svg");
  CHECK_THAT(files.back().bytes, ContainsSubstring("setting,base,tokens,low,high,censored\nrope,100,") &&
                                     ContainsSubstring("B(m) < 0,100,"));
  for (const char* format : {"html", "markdown"}) CHECK_THAT(run.report(format), !ContainsSubstring("{headline}"));
}

}  // namespace fathom::reports
