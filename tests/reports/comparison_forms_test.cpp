#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "reports/comparison/form.h"
#include "reports/comparison/wording.h"
#include "tests/support/catch.h"

namespace fathom::reports {
namespace {

using analysis::Comparison;
using analysis::Verdict;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinAbs;

analysis::GateUnit score_unit(const std::string& task, std::int64_t length, double before, double now,
                              Verdict verdict) {
  analysis::GateUnit unit;
  unit.kind = task.empty() ? analysis::UnitKind::kMeanLength : analysis::UnitKind::kTaskLength;
  unit.task = task;
  unit.length_tokens = length;
  unit.scores = {50, 550, before, now, now - before, Interval{now - before - 0.04, now - before + 0.04}, 0.0004};
  unit.p = 0.0004;
  unit.p_adjusted = 0.034;
  unit.verdict = verdict;
  return unit;
}

analysis::GateUnit effective_unit() {
  analysis::GateUnit unit;
  unit.kind = analysis::UnitKind::kEffectiveAbsolute;
  unit.effective.baseline = {analysis::Censoring::kRight, 512, {}, 512, 128, {}};
  unit.effective.candidate = {analysis::Censoring::kLeft, {}, {}, {}, 128, {}};
  unit.effective.steps = -3;
  unit.p = unit.p_adjusted = 1e-4;
  unit.verdict = Verdict::kRegression;
  return unit;
}

/// A comparison of hostile names with one of everything.
Comparison made_up_comparison() {
  Comparison out;
  out.baseline_database = out.candidate_database = "nightly.db";
  out.baseline.run.name = "monday";
  out.baseline.run.started_at = "2025-01-06T03:00:00Z";
  out.candidate.run.name = "tuesday";
  out.candidate.run.started_at = "2025-01-07T03:00:00Z";
  out.pairs = {{0, 0, "rope θ=10⁴ <b>&\"模型\"</b>"}};
  out.units = {score_unit("niah_single_2", 256, 0.92, 0.80, Verdict::kRegression),
               score_unit("vt", 256, 0.92, 0.90, Verdict::kWarning), score_unit("", 256, 0.92, 0.92, Verdict::kSame),
               effective_unit()};
  analysis::CellChange cell;
  cell.task = "niah_single_2";
  cell.length_tokens = 256;
  cell.depth_bp = 5000;
  cell.n_samples = 50;
  cell.baseline = 1;
  cell.candidate = 0.5;
  cell.p = cell.p_adjusted = 1e-6;
  analysis::MissExample example;
  example.index = 7;
  example.prompt_tail = "100 % sure?\nThe number is";
  example.expected = "4711";
  example.baseline_reply = " 4711.";
  example.candidate_reply = "]]> <none> & \x01";
  cell.examples = {example};
  out.worst_cells = {cell};
  out.n_cells = 22;
  analysis::SharedCount counted;
  counted.task = "niah_single_2";
  counted.length_tokens = 256;
  counted.n_shared = 550;
  counted.n_only_candidate = 11;
  out.shared = {counted};
  out.differences = {"config scaling: yarn before, none now"};
  analysis::ScoreChange lp;
  lp.scorer = "lp";
  lp.task = "niah_single_2";
  lp.length_tokens = 256;
  lp.scores = {50, 550, -1, -2, -1, Interval{-1.5, -0.5}, 0.01};
  out.other_scores = {lp};
  return out;
}

std::string written(const std::string& form, const Comparison& comparison) {
  std::ostringstream out;
  comparison_forms().at(form).write(comparison, out);
  return out.str();
}

/// Every start tag has its end tag, and no markup character is left in texts.
bool is_well_formed(const std::string& xml) {
  const std::regex tag("<(/?)([a-z-]+)((?: [a-z]+=\"[^\"<]*\")*)(/?)>");
  std::vector<std::string> open;
  std::size_t end_of_last = xml.find("?>") + 2;
  for (std::sregex_iterator it(xml.begin() + static_cast<std::ptrdiff_t>(end_of_last), xml.end(), tag), end; it != end;
       ++it) {
    const std::string between = it->prefix();
    if (between.find('<') != std::string::npos || between.find("]]>") != std::string::npos) return false;
    if ((*it)[1].length() > 0) {
      if (open.empty() || open.back() != (*it)[2]) return false;
      open.pop_back();
    } else if ((*it)[4].length() == 0) {
      open.push_back((*it)[2]);
    }
  }
  return open.empty();
}

}  // namespace

TEST_CASE("compare forms: the text names what fell, by how much, and an example", "[reports][compare]") {
  const std::string text = written("text", made_up_comparison());
  CHECK_THAT(text, ContainsSubstring("regression: 2 of 4 tests fell (drop > 2 points and adjusted p < 0.05)"));
  CHECK_THAT(text, ContainsSubstring("92.0 -> 80.0 (-12.0; 95 % -16.0 to -8.0); p 4.0e-04, adjusted 0.034"));
  CHECK_THAT(text, ContainsSubstring("≥512 -> <128 (3 tested lengths lower)"));
  CHECK_THAT(text, ContainsSubstring("niah_single_2 at 256, depth 50 %: 100 -> 50 of 100, n = 50"));
  CHECK_THAT(text, ContainsSubstring("expected 4711"));
  CHECK_THAT(text, ContainsSubstring("550 of 550 samples of the baseline are shared; 11 only in the candidate"));
  CHECK_THAT(text, ContainsSubstring("config scaling: yarn before, none now"));
  CHECK(text.find('\x01') == std::string::npos);
}

TEST_CASE("compare forms: the JSON holds every test", "[reports][compare]") {
  const auto json = nlohmann::json::parse(written("json", made_up_comparison()));
  CHECK(json["verdict"] == "regression");
  CHECK(json["exit_code"] == 4);
  REQUIRE(json["units"].size() == 4);
  CHECK(json["units"][0]["kind"] == "task");
  CHECK_THAT(json["units"][0]["difference"].get<double>(), WithinAbs(-0.12, 1e-12));
  CHECK(json["units"][2]["task"].is_null());
  CHECK(json["units"][3]["baseline"]["tokens"] == 512);
  CHECK(json["units"][3]["baseline"]["censored"] == "right");
  CHECK(json["units"][3]["candidate"]["tokens"].is_null());
  CHECK(json["units"][3]["candidate"]["censored"] == "left");
  CHECK(json["worst_cells"][0]["depth"] == 50);
  CHECK(json["worst_cells"][0]["examples"][0]["expected"] == "4711");
  // One bit is ln 2 nats.
  CHECK_THAT(json["other_scores"][0]["difference"].get<double>(), WithinAbs(-0.6931471805599453, 1e-12));
}

TEST_CASE("compare forms: JUnit is well-formed whatever names and replies hold", "[reports][compare]") {
  const std::string xml = written("junit", made_up_comparison());
  CHECK(is_well_formed(xml));
  CHECK_THAT(xml, ContainsSubstring("tests=\"5\" failures=\"2\" errors=\"0\""));
  CHECK_THAT(xml, ContainsSubstring("<failure type=\"regression\" message=\"92.0 -&gt; 80.0"));
  CHECK_THAT(xml, ContainsSubstring("rope θ=10⁴ &lt;b&gt;&amp;&quot;模型&quot;"));
}

TEST_CASE("compare forms: annotations escape what the runner reads", "[reports][compare]") {
  const std::string text = written("github", made_up_comparison());
  CHECK_THAT(text, ContainsSubstring("::error title=fathom compare::regression: 2 of 4 tests fell"));
  CHECK_THAT(text, ContainsSubstring("::warning title=fathom%3A rope"));
  CHECK_THAT(text, ContainsSubstring("100 %25 sure?⏎The number is"));
}

TEST_CASE("compare forms: incomplete goes before regression in every form", "[reports][compare]") {
  Comparison comparison = made_up_comparison();
  comparison.incomplete = {"the candidate lacks task vt"};
  CHECK_THAT(written("text", comparison), ContainsSubstring("incomplete: the candidate lacks task vt; regression: 2"));
  CHECK(nlohmann::json::parse(written("json", comparison))["exit_code"] == 5);
  CHECK_THAT(written("junit", comparison), ContainsSubstring("<error type=\"incomplete\""));
  CHECK(is_well_formed(written("junit", comparison)));
  CHECK_THAT(written("github", comparison), ContainsSubstring("::error title=fathom compare::incomplete"));
}

TEST_CASE("compare forms: nothing to say is said", "[reports][compare]") {
  Comparison empty;
  empty.incomplete = {"no variant is in both runs"};
  for (const ComparisonFormEntry& form : comparison_forms().entries()) {
    CHECK_THAT(written(std::string(form.name), empty), ContainsSubstring("no variant is in both runs"));
  }
}

}  // namespace fathom::reports
