// Reports of a small made-up database against golden files. FATHOM_UPDATE_GOLDEN=1 in the environment writes the files
// anew.
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "harness/core/error.h"
#include "harness/store/result_store.h"
#include "reports/format.h"
#include "reports/report.h"
#include "tests/support/catch.h"
#include "tests/support/made_up_run.h"
#include "tests/support/temp_folder.h"

namespace fathom {
namespace {

using Catch::Matchers::ContainsSubstring;

/// A report of a made-up sweep, timings left out.
std::string report_of(const std::string& format, const test::MadeUpSweep& sweep, reports::ReportOptions options = {}) {
  const test::TempFolder folder;
  const std::string path = folder.file("results.db");
  test::put_made_up_run(*store::open_store(path), "made-up", sweep);
  options.show_timings = false;
  std::ostringstream out;
  reports::registry().at(format).write(*store::open_reader(path), options, out);
  return out.str();
}

std::string report_of_kind(const std::string& format, const std::string& kind) {
  return report_of(format, test::made_up_sweep(kind));
}

void check_golden(const std::string& text, const std::string& name) {
  const std::string path = std::string(FATHOM_TEST_DIR) + "/golden/" + name;
  if (std::getenv("FATHOM_UPDATE_GOLDEN") != nullptr) std::ofstream(path, std::ios::binary) << text;
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in.good());
  const std::string expected(std::istreambuf_iterator<char>(in), {});
  INFO("golden file " << name);
  CHECK(text == expected);
}

/// Scores as given for every cell of one task.
test::MadeUpSweep no_cells() {
  test::MadeUpSweep sweep = test::made_up_sweep("small");
  sweep.tasks.clear();
  return sweep;
}

/// A run in which every answer of a variant has the same score.
std::string constant_report(const std::string& format, const std::map<std::string, double>& score_of_variant) {
  const test::TempFolder folder;
  const std::string path = folder.file("results.db");
  auto sink = store::open_store(path);
  sink->begin_run(test::made_up_run_record("constant"));
  std::vector<eval::SampleRecord> rows;
  for (const auto& [variant, score] : score_of_variant) {
    sink->put_variant(test::made_up_variant(variant));
    for (const std::int64_t length : {128, 256, 512}) {
      for (std::int64_t i = 0; i < 5; ++i)
        rows.push_back(test::made_up_sample(variant, {"niah_single_2", length, 0}, i, score));
    }
  }
  sink->put_batch(rows);
  std::ostringstream out;
  reports::registry().at(format).write(*store::open_reader(path), {}, out);
  return out.str();
}

std::string constant_report(const std::string& format, double score) {
  return constant_report(format, {{"rope", score}});
}

}  // namespace

TEST_CASE("reports: controls are shown in every format", "[reports]") {
  const test::TempFolder folder;
  const std::string path = folder.file("results.db");
  auto sink = store::open_store(path);
  sink->begin_run(test::made_up_run_record("controlled"));
  sink->put_variant(test::made_up_variant("rope"));
  std::vector<eval::SampleRecord> rows;
  for (std::int64_t i = 0; i < 4; ++i) {
    rows.push_back(test::made_up_sample("rope", {"niah_single_2", 256, std::nullopt}, i, 1.0));
    rows.push_back(test::made_up_sample("rope", {"niah_single_2", 256, std::nullopt}, i, i == 0 ? 1.0 : 0.0));
    rows.back().control = "needle_only";
    rows.back().result_key += "|control";
  }
  sink->put_batch(rows);
  for (const std::string format : {"html", "markdown", "terminal", "json", "csv"}) {
    std::ostringstream out;
    reports::registry().at(format).write(*store::open_reader(path), {}, out);
    INFO(format);
    CHECK_THAT(out.str(), ContainsSubstring(format == "markdown" ? "needle\\_only" : "needle_only"));
    CHECK_THAT(out.str(), ContainsSubstring(format == "json" || format == "csv" ? "0.25" : "25"));
    // The control's zeros are no part of the score.
    if (format == "json") {
      const auto run = nlohmann::json::parse(out.str()).at("runs").at(0);
      CHECK(run.at("variants").at(0).at("cells").at(0).at("mean") == 1.0);
      CHECK(run.at("controls").at(0).at("n") == 4);
      CHECK(run.at("variants").at(0).at("beyond_model").empty());
    }
  }
}

TEST_CASE("reports: a task that is beyond the model is said to be", "[reports]") {
  const test::TempFolder folder;
  const std::string path = folder.file("results.db");
  auto sink = store::open_store(path);
  sink->begin_run(test::made_up_run_record("controlled"));
  sink->put_variant(test::made_up_variant("rope"));
  std::vector<eval::SampleRecord> rows;
  for (std::int64_t i = 0; i < 20; ++i) {
    for (const std::string task : {"niah_single_2", "vt"}) {
      rows.push_back(test::made_up_sample("rope", {task, 256, std::nullopt}, i, task == "vt" ? 0.0 : 1.0));
      rows.push_back(rows.back());
      rows.back().control = "needle_only";
      rows.back().result_key += "|control";
    }
    rows.push_back(test::made_up_sample("rope", {"cwe", 256, std::nullopt}, i, 0.0));
  }
  sink->put_batch(rows);
  for (const std::string format : {"html", "markdown", "terminal", "json"}) {
    std::ostringstream out;
    reports::registry().at(format).write(*store::open_reader(path), {}, out);
    INFO(format);
    if (format == "json") {
      const auto report = nlohmann::json::parse(out.str());
      CHECK(report.at("runs").at(0).at("variants").at(0).at("beyond_model") == nlohmann::json({"vt"}));
      CHECK(report.at("runs").at(0).at("variants").at(0).at("fails_without_control") == nlohmann::json({"cwe"}));
    } else {
      CHECK_THAT(out.str(), ContainsSubstring("beyond this model, which fails"));
      CHECK_THAT(out.str(), ContainsSubstring("facts: cwe"));
      if (format == "markdown") {
        // Claimed, effective, interval, relative, score, facts alone.
        CHECK_THAT(out.str(), ContainsSubstring("| niah\\_single\\_2 | 512 | ≥256 | ≥256 | ≥256 | 100 | 100 |"));
        CHECK_THAT(out.str(), ContainsSubstring("| vt | 512 | &lt;256 | &lt;256 | – | 0 | 0 | beyond this model |"));
        CHECK_THAT(out.str(),
                   ContainsSubstring("| cwe | 512 | &lt;256 | &lt;256 | – | 0 | – | fails throughout, no control |"));
      }
    }
  }
}

TEST_CASE("reports: results of other tools stand beside the run, contradictions flagged", "[reports]") {
  const test::TempFolder folder;
  const std::string path = folder.file("results.db");
  test::put_made_up_run(*store::open_store(path), "made-up", test::made_up_sweep("small"));
  store::ImportedSource source{"RULER (published)", "ruler-published", "from <a table>", {}};
  for (const auto& [model, listed, last] :
       {std::make_tuple("good | one", "4K", 80.0), std::make_tuple("boasting", ">8K", 85.1),
        std::make_tuple("edge", ">8K", 85.6)}) {
    store::ImportedRow row;
    row.model = model;
    row.claimed_tokens = 8192;
    row.listed_effective = listed;
    row.scores = {{"", 4096, 90.0, std::nullopt}, {"", 8192, last, std::nullopt}};
    source.rows.push_back(row);
  }
  store::put_import(path, source);
  const auto reader = store::open_reader(path);
  for (const std::string format : {"html", "markdown", "terminal"}) {
    std::ostringstream out;
    reports::registry().at(format).write(*reader, {}, out);
    INFO(format);
    const std::string text = out.str();
    CHECK_THAT(text, ContainsSubstring("Results of other tools") && ContainsSubstring("boasting"));
    const auto first = text.find("CONTRADICTS");
    CHECK(first != std::string::npos);
    CHECK(text.find("CONTRADICTS", first + 1) == std::string::npos);
    CHECK_THAT(text, ContainsSubstring("at the boundary"));
    CHECK(text.find("<a table>") == (format == "terminal" ? text.find("<a table>") : std::string::npos));
  }
  std::ostringstream out;
  reports::registry().at("json").write(*reader, {}, out);
  const auto imported = nlohmann::json::parse(out.str()).at("imported").at(0);
  CHECK(imported.at("contradictions") == 1);
  CHECK(imported.at("rows").at(0).at("effective").at("tokens") == 4096);
  CHECK(imported.at("rows").at(1).at("agreement") == "contradicts");
  CHECK(imported.at("rows").at(2).at("agreement") == "boundary");
  std::ostringstream chinese;
  reports::ReportOptions options;
  options.language = "zh";
  reports::registry().at("html").write(*reader, options, chinese);
  CHECK_THAT(chinese.str(), ContainsSubstring("其他工具的结果"));
}

TEST_CASE("reports: imported results alone make a report", "[reports]") {
  const test::TempFolder folder;
  const std::string path = folder.file("results.db");
  store::ImportedRow row;
  row.model = "only";
  row.scores = {{"", 4096, 90.0, std::nullopt}};
  store::put_import(path, {"elsewhere", "lm-eval", "", {row}});
  for (const std::string& format : reports::registry().names()) {
    std::ostringstream out;
    reports::registry().at(format).write(*store::open_reader(path), {}, out);
    INFO(format);
    CHECK_THAT(out.str(), ContainsSubstring("only") && ContainsSubstring("elsewhere"));
  }
}

TEST_CASE("reports: the table names every format once", "[reports]") {
  CHECK(reports::registry().names() == std::vector<std::string>{"csv", "html", "json", "markdown", "terminal"});
  CHECK_THROWS_AS(reports::registry().at("htlm"), ConfigError);
  CHECK_THROWS_WITH(reports::registry().at("htlm"),
                    ContainsSubstring("unknown report format 'htlm'; did you mean 'html'?"));
}

TEST_CASE("reports: golden files of a small run", "[reports][golden]") {
  check_golden(report_of_kind("markdown", "small"), "report_small.md");
  check_golden(report_of_kind("json", "small"), "report_small.json");
  check_golden(report_of_kind("csv", "small"), "report_small.csv");
  check_golden(report_of_kind("terminal", "small"), "report_small.txt");
}

TEST_CASE("reports: the same database gives the same bytes", "[reports]") {
  for (const reports::ReportEntry& entry : reports::registry().entries()) {
    INFO(entry.name);
    CHECK(report_of_kind(std::string(entry.name), "small") == report_of_kind(std::string(entry.name), "small"));
  }
}

TEST_CASE("reports: without timings nothing tells when or where it ran", "[reports]") {
  for (const reports::ReportEntry& entry : reports::registry().entries()) {
    INFO(entry.name);
    const std::string text = report_of_kind(std::string(entry.name), "small");
    CHECK_THAT(text, !ContainsSubstring("2025-01-02") && !ContainsSubstring("made-up processor") &&
                         !ContainsSubstring("62 s") && !ContainsSubstring("200 MiB"));
  }
}

TEST_CASE("reports: a database without runs", "[reports]") {
  const test::TempFolder folder;
  store::open_store(folder.file("results.db"));
  const auto reader = store::open_reader(folder.file("results.db"));
  const auto write = [&](const char* format) {
    std::ostringstream out;
    reports::registry().at(format).write(*reader, {}, out);
    return out.str();
  };
  CHECK_THAT(write("html"), ContainsSubstring("This database holds no runs yet.") && ContainsSubstring("</html>"));
  CHECK_THAT(write("markdown"), ContainsSubstring("This database holds no runs yet."));
  CHECK_THAT(write("terminal"), ContainsSubstring("This database holds no runs yet."));
  CHECK(nlohmann::json::parse(write("json")) == nlohmann::json::parse(R"({"runs":[]})"));
  const std::string csv = write("csv");
  CHECK(csv.find('\n') == csv.size() - 1);
}

TEST_CASE("reports: a run without samples says so and shows its models", "[reports]") {
  CHECK_THAT(report_of("html", no_cells()), ContainsSubstring("This run has no results yet.") &&
                                                ContainsSubstring("rope yarn") && !ContainsSubstring("<figure>"));
  CHECK_THAT(report_of("markdown", no_cells()),
             ContainsSubstring("This run has no results yet.") && ContainsSubstring("rope yarn"));
  CHECK_THAT(report_of("terminal", no_cells()),
             ContainsSubstring("This run has no results yet.") && ContainsSubstring("rope yarn"));
  const auto json = nlohmann::json::parse(report_of("json", no_cells()));
  CHECK(json["runs"][0]["variants"].size() == 2);
  CHECK(json["runs"][0]["variants"][0]["cells"].empty());
  CHECK(json["runs"][0]["variants"][0]["effective"]["mean"]["absolute"]["tokens"].is_null());
}

TEST_CASE("reports: cells that were not built are shown, not scored", "[reports]") {
  const std::string html = report_of_kind("html", "small");
  CHECK_THAT(html, ContainsSubstring("too_short: prompt 171 + budget 16 = 187 tokens"));
  CHECK_THAT(report_of_kind("terminal", "small"), ContainsSubstring("too_short: prompt 171"));
  const auto json = nlohmann::json::parse(report_of_kind("json", "small"));
  for (const auto& cell : json["runs"][0]["variants"][0]["cells"]) {
    CHECK_FALSE((cell["task"] == "niah_multikey_1" && cell["length"] == 128));
  }
}

TEST_CASE("reports: graded scores stand in their own unit", "[reports]") {
  const std::string markdown = report_of_kind("markdown", "small");
  CHECK_THAT(markdown,
             ContainsSubstring("## Other scores") && ContainsSubstring("| lp (bits) | niah\\_multikey\\_1 | rope |"));
}

TEST_CASE("reports: all right and all wrong", "[reports]") {
  const auto right = nlohmann::json::parse(constant_report("json", 1.0));
  const auto& best = right["runs"][0]["variants"][0]["effective"]["mean"];
  CHECK(best["absolute"] == nlohmann::json::parse(R"({"tokens":512,"censored":"right","low":512,"high":512})"));
  const auto wrong = nlohmann::json::parse(constant_report("json", 0.0));
  const auto& worst = wrong["runs"][0]["variants"][0]["effective"]["mean"];
  CHECK(worst["absolute"] == nlohmann::json::parse(R"({"tokens":null,"censored":"left","low":null,"high":null})"));
  CHECK(worst["relative"]["censored"] == "none");
  CHECK_THAT(constant_report("html", 0.0), ContainsSubstring("every score is 0") && ContainsSubstring("&lt;128"));
  CHECK_THAT(constant_report("terminal", 1.0), ContainsSubstring("≥512"));
}

TEST_CASE("reports: zeros of one variant are not put down to the prompts that another scores on", "[reports]") {
  const std::string one_of_two = constant_report("markdown", {{"rope", 0.0}, {"yarn", 1.0}});
  CHECK_THAT(one_of_two, ContainsSubstring("every score is 0, while other variants of the same model score"));
  CHECK_THAT(one_of_two, !ContainsSubstring("check prompt and template"));
  const std::string both = constant_report("markdown", {{"rope", 0.0}, {"yarn", 0.0}});
  CHECK_THAT(both,
             ContainsSubstring("check prompt and template") && !ContainsSubstring("other variants of the same model"));
}

TEST_CASE("reports: json has the documented shape", "[reports][json]") {
  const auto json = nlohmann::json::parse(report_of_kind("json", "small"));
  const auto& variant = json.at("runs").at(0).at("variants").at(1);
  for (const char* key :
       {"model", "position", "base", "scaling", "factor", "claimed", "trained", "effective", "cells"}) {
    CHECK(variant.contains(key));
  }
  CHECK(variant["scaling"] == "yarn");
  CHECK(variant["base"] == 10000.0);
  CHECK(variant["factor"].is_null());
  CHECK(variant["effective"].size() == 3);
  const auto& cell = variant["cells"][0];
  CHECK(cell.size() == 7);
  CHECK(cell["depth"] == 0);
  CHECK(cell["n"] == 4);
  CHECK((cell["mean"].get<double>() >= 0 && cell["mean"].get<double>() <= 1));
  CHECK(variant["cells"].back()["task"] == "vt");
  CHECK(variant["cells"].back()["depth"].is_null());
}

TEST_CASE("reports: html escapes names and prompts, and needs no network", "[reports][html]") {
  const std::string html = report_of_kind("html", "unicode");
  CHECK_THAT(html, !ContainsSubstring("<b>naïve") && ContainsSubstring("&lt;b&gt;naïve&lt;/b&gt;") &&
                       ContainsSubstring("模型") && !ContainsSubstring("<keeper>"));
  CHECK_THAT(html, !ContainsSubstring("src=") && !ContainsSubstring("@import") && !ContainsSubstring("url(") &&
                       !ContainsSubstring("<script ") && !ContainsSubstring("<link"));
  CHECK_THAT(html, !ContainsSubstring("{{") && ContainsSubstring("</html>"));
}

TEST_CASE("reports: html has a text alternative and the numbers of every chart", "[reports][html]") {
  const std::string html = report_of_kind("html", "small");
  std::size_t n_images = 0;
  for (auto at = html.find("<svg"); at != std::string::npos; at = html.find("<svg", at + 1)) {
    const std::string tag = html.substr(at, html.find('>', at) - at);
    const bool labelled =
        tag.find("aria-label=\"") != std::string::npos && tag.find("aria-label=\"\"") == std::string::npos;
    CHECK((labelled || tag.find("aria-hidden=\"true\"") != std::string::npos));
    ++n_images;
  }
  CHECK(n_images > 8);
  CHECK_THAT(html, ContainsSubstring("<details><summary>Numbers</summary>") &&
                       ContainsSubstring("<summary>Numbers: niah_multikey_1</summary>"));
  CHECK_THAT(html, ContainsSubstring("prefers-color-scheme: dark") && ContainsSubstring("@media print"));
}

TEST_CASE("reports: the terminal report fits its columns", "[reports][terminal]") {
  for (const char* kind : {"small", "unicode", "many"}) {
    for (const int columns : {80, 100}) {
      reports::ReportOptions options;
      options.terminal_columns = columns;
      std::istringstream lines(report_of("terminal", test::made_up_sweep(kind), options));
      for (std::string line; std::getline(lines, line);) {
        INFO(kind << " " << columns << ": " << line);
        // Eighty columns cannot hold the numbers of the summary table; names give way first.
        CHECK(reports::display_width(line) <= std::max(columns, 100));
      }
    }
  }
}

TEST_CASE("reports: colour only where asked for", "[reports][terminal]") {
  reports::ReportOptions options;
  CHECK_THAT(report_of("terminal", test::made_up_sweep("small"), options), !ContainsSubstring("\x1b["));
  options.colour = true;
  CHECK_THAT(report_of("terminal", test::made_up_sweep("small"), options), ContainsSubstring("\x1b["));
}

TEST_CASE("reports: every language has the same labels", "[reports][labels]") {
  reports::ReportOptions options;
  options.language = "zh";
  for (const char* format : {"html", "markdown", "terminal"}) {
    CHECK_THAT(report_of(format, test::made_up_sweep("small"), options), ContainsSubstring("有效"));
  }
  options.language = "fr";
  CHECK_THROWS_WITH(report_of("html", test::made_up_sweep("small"), options),
                    "report: unknown language 'fr'; known: en, zh");
}

TEST_CASE("reports: unknown runs are errors", "[reports][errors]") {
  reports::ReportOptions options;
  options.runs = {"made-upp"};
  CHECK_THROWS_AS(report_of("json", test::made_up_sweep("small"), options), StoreError);
  CHECK_THROWS_WITH(report_of("json", test::made_up_sweep("small"), options),
                    ContainsSubstring("did you mean 'made-up'?"));
}

TEST_CASE("reports: the settings of the run are used", "[reports]") {
  reports::ReportOptions options;
  options.settings_of = [](const eval::RunRecord& run) {
    CHECK(run.name == "made-up");
    analysis::SummarySettings settings;
    settings.absolute_threshold = 20;
    settings.effective = {"vt"};
    return settings;
  };
  const auto json = nlohmann::json::parse(report_of("json", test::made_up_sweep("small"), options));
  const auto& effective = json["runs"][0]["variants"][0]["effective"];
  CHECK(effective.size() == 1);
  CHECK(effective["vt"]["absolute"]["tokens"] == 1024);
}

}  // namespace fathom
