#include "reports/charts.h"

#include "reports/svg.h"
#include "tests/support/catch.h"

namespace fathom::reports {
namespace {

using Catch::Matchers::ContainsSubstring;

analysis::ScorePoint point_at(std::int64_t length, std::optional<std::int32_t> depth, std::optional<double> mean) {
  analysis::ScorePoint point;
  point.length_tokens = length;
  point.depth_bp = depth;
  point.mean = mean;
  point.n_values = 10;
  if (mean) {
    point.low = *mean * 0.9;
    point.high = *mean * 0.9 + 0.1;
  }
  return point;
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("svg: numbers are short and the same everywhere", "[reports][svg]") {
  CHECK(svg_number(1) == "1");
  CHECK(svg_number(1.5) == "1.5");
  CHECK(svg_number(1.239) == "1.24");
  CHECK(svg_number(-0.001) == "0");
  CHECK(svg_number(100) == "100");
}

TEST_CASE("svg: texts and attributes are escaped", "[reports][svg]") {
  SvgWriter svg(10, 20, "a <\"title\">");
  svg.text(1, 2, "<script>", {{"class", "a\"b"}});
  CHECK(svg.finish() ==
        "<svg class=\"chart\" role=\"img\" aria-label=\"a &lt;&quot;title&quot;&gt;\" width=\"10\" height=\"20\" "
        "viewBox=\"0 0 10 20\" "
        "xmlns=\"http://www.w3.org/2000/svg\"><text x=\"1\" y=\"2\" class=\"a&quot;b\">&lt;script&gt;</text></svg>");
  CHECK_THAT(SvgWriter(1, 1, "").finish(), ContainsSubstring("aria-hidden=\"true\""));
}

TEST_CASE("heat map: text stands out on every colour of the scale", "[reports][charts]") {
  double last = -1;
  for (int i = 0; i <= 100; ++i) {
    const Rgb colour = heat_colour(i / 100.0);
    INFO("score " << i);
    const Rgb text = dark_background(colour) ? Rgb{255, 255, 255} : Rgb{0, 0, 0};
    CHECK(contrast_ratio(colour, text) >= 4.5);
    // The scale grows lighter with the score, so that it reads in grey too.
    const double lightness = contrast_ratio(colour, {0, 0, 0});
    CHECK(lightness > last);
    last = lightness;
  }
}

TEST_CASE("heat map: a score in each cell, nothing in cells that were not run", "[reports][charts]") {
  const std::vector<analysis::ScorePoint> cells = {point_at(128, 0, 1.0), point_at(128, 5000, 0.5),
                                                   point_at(256, 0, 0.0), point_at(256, 5000, std::nullopt)};
  const std::string svg = heat_map_svg({"scores", &cells, "Depth", "Length"});
  CHECK(count(svg, "<rect") == 4);  // background and three cells
  CHECK_THAT(svg, ContainsSubstring(">100</text>") && ContainsSubstring(">50</text>") &&
                      ContainsSubstring("class=\"on-dark\"") && ContainsSubstring("class=\"on-light\""));
  CHECK(heat_map_svg({"none", &cells, "Depth", "Length"}) != "");
  const std::vector<analysis::ScorePoint> none;
  CHECK(heat_map_svg({"none", &none, "Depth", "Length"}).empty());
}

TEST_CASE("curve: a band over neighbours with intervals only", "[reports][charts]") {
  std::vector<analysis::ScorePoint> points = {point_at(128, std::nullopt, 1.0), point_at(256, std::nullopt, 0.8),
                                              point_at(512, std::nullopt, 0.4)};
  CurveChart chart;
  chart.lengths = {128, 256, 512};
  chart.series = {{"rope", 0, &points}};
  chart.trained_marks = {256};
  chart.claimed_marks = {8192};
  chart.trained_label = "trained";
  chart.claimed_label = "claimed";
  std::string svg = curve_chart_svg(chart);
  CHECK(count(svg, "class=\"b0\"") == 1);
  CHECK(count(svg, "class=\"m0\"") == 3);
  CHECK_THAT(svg, ContainsSubstring("trained 256") && ContainsSubstring("claimed 8K →"));
  points[1].low.reset();
  svg = curve_chart_svg(chart);
  CHECK(count(svg, "class=\"b0\"") == 0);
  chart.lengths.clear();
  CHECK(curve_chart_svg(chart).empty());
}

TEST_CASE("curve: one length stands in the middle", "[reports][charts]") {
  const std::vector<analysis::ScorePoint> points = {point_at(128, std::nullopt, 1.0)};
  CurveChart chart;
  chart.lengths = {128};
  chart.series = {{"rope", 0, &points}};
  const std::string svg = curve_chart_svg(chart);
  CHECK_THAT(svg, !ContainsSubstring("nan") && !ContainsSubstring("inf"));
}

}  // namespace fathom::reports
