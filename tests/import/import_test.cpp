// Results of other tools: what each format reads, what it refuses, and RULER's rule on its own published table.

#include "harness/import/import_format.h"

#include <map>
#include <set>

#include "harness/analysis/imported_summary.h"
#include "harness/core/error.h"
#include "harness/import/csv_table.h"
#include "harness/store/result_reader.h"
#include "tests/support/catch.h"
#include "tests/support/csv.h"
#include "tests/support/temp_folder.h"

namespace fathom::import {
namespace {

using analysis::ListedAgreement;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinAbs;

store::ImportedSource read(const std::string& format, const ImportRequest& request) {
  return formats().at(format).read(request);
}

store::ImportedSource read_built_in(const std::string& format) {
  const ImportEntry& entry = formats().at(format);
  return entry.read({"built in", built_in_table(entry.built_in), std::nullopt, std::nullopt});
}

std::set<std::string> models_that(const analysis::ImportedSummary& summary, ListedAgreement agreement) {
  std::set<std::string> models;
  for (const analysis::ImportedResult& result : summary.results) {
    if (result.agreement == agreement) models.insert(result.row.model);
  }
  return models;
}

const std::string kLmEval = R"({
 "results": {
  "niah_single_1": {"alias": " - niah_single_1", "4096,none": 1.0, "4096_stderr,none": "N/A", "8192,none": 0.25, "16384,none": -1},
  "ruler_vt": {"alias": " - ruler_vt", "4096,none": 0.5, "8192,none": -1},
  "ruler": {"4096,none": 0.75, "alias": "ruler"},
  "arc": {"acc,none": 0.4}
 },
 "groups": {"ruler": {"4096,none": 0.75}},
 "config": {"model": "hf", "model_args": "pretrained=org/tiny,dtype=bfloat16"},
 "n-samples": {"niah_single_1": {"original": 500, "effective": 50}},
 "git_hash": "abc123"
})";

}  // namespace

TEST_CASE("import: RULER's rule on its published table, five contradictions and one boundary", "[import]") {
  const analysis::ImportedSummary summary = analysis::summarise_import(read_built_in("ruler-published"));
  CHECK(summary.n_contradictions == 5);
  CHECK(models_that(summary, ListedAgreement::kContradicts) ==
        std::set<std::string>{"Qwen3-14B", "Qwen2.5-7B-Instruct-1M", "Qwen3-8B", "Qwen3-4B", "EXAONE-4.0-1.2B"});
  CHECK(models_that(summary, ListedAgreement::kBoundary) == std::set<std::string>{"Qwen3-32B"});
  CHECK(models_that(summary, ListedAgreement::kNothingListed) == std::set<std::string>{"Llama2-7B chat"});
  CHECK(models_that(summary, ListedAgreement::kAgrees).size() == 38);
  std::map<std::string, std::string> by_rule;
  for (const analysis::ImportedResult& result : summary.results)
    by_rule[result.row.model] = analysis::format_effective(result.effective);
  for (const test::CsvRow& row : test::read_published_csv("ruler_published.csv")) {
    if (row.at("role") != "model") continue;
    INFO(row.at("model"));
    CHECK(by_rule.at(row.at("model")) == row.at("rule_gt"));
  }
  CHECK(summary.lengths == std::vector<std::int64_t>{4096, 8192, 16384, 32768, 65536, 131072});
  for (const analysis::ImportedResult& result : summary.results) {
    // Tasks specification 4.3.
    if (result.row.model == "Llama3.1-8B") CHECK_THAT(result.means.value().increasing, WithinAbs(85.4, 0.1));
    // A row without 128K has no weighted means.
    if (result.row.model == "EXAONE-4.0-1.2B") CHECK_FALSE(result.means.has_value());
  }
}

TEST_CASE("import: NoLiMa's listed lengths follow from its thresholds", "[import]") {
  const analysis::ImportedSummary summary = analysis::summarise_import(read_built_in("nolima-published"));
  CHECK(summary.results.size() == 18);
  CHECK(summary.n_contradictions == 0);
  CHECK(models_that(summary, ListedAgreement::kAgrees).size() == 18);
}

TEST_CASE("import: listed lengths as the tables write them", "[import]") {
  using analysis::Censoring;
  CHECK(analysis::parse_listed_effective("64K").value().tokens == 65536);
  CHECK(analysis::parse_listed_effective(">128K").value().kind == Censoring::kRight);
  CHECK(analysis::parse_listed_effective("<4K").value().first_tested == 4096);
  CHECK_FALSE(analysis::parse_listed_effective("").has_value());
  CHECK_FALSE(analysis::parse_listed_effective("many").has_value());
}

TEST_CASE("import: lm-evaluation-harness keeps lengths in metric names and -1 for what was not run", "[import]") {
  const store::ImportedSource source = read("lm-eval", {"results.json", kLmEval, std::nullopt, std::nullopt});
  REQUIRE(source.rows.size() == 1);
  const store::ImportedRow& row = source.rows[0];
  CHECK(row.model == "org/tiny");
  CHECK_THAT(row.provenance, ContainsSubstring("results.json") && ContainsSubstring("git_hash abc123"));
  std::map<std::pair<std::string, std::int64_t>, double> scores;
  for (const store::ImportedScore& score : row.scores) scores[{score.task, score.length_tokens}] = score.percent;
  CHECK(scores == std::map<std::pair<std::string, std::int64_t>, double>{
                      {{"niah_single_1", 4096}, 100}, {{"niah_single_1", 8192}, 25}, {{"vt", 4096}, 50}});
  CHECK_THAT(row.note, ContainsSubstring("1 metrics without a length"));
  CHECK(read("lm-eval", {"r.json", kLmEval, "mine", std::nullopt}).rows[0].model == "mine");
  // Two of the 13 tasks: no mean that RULER's rule could be applied to.
  const analysis::ImportedSummary summary = analysis::summarise_import(source);
  CHECK(summary.results[0].effective.kind == analysis::Censoring::kNone);
}

TEST_CASE("import: RULER's summary.csv, model and length from the path or the options", "[import]") {
  const std::string text = "0,1,2\nTasks,niah_single_1,vt\nScore,99.8,76.52\nNulls,0/500,3/500\n";
  const store::ImportedSource source =
      read("ruler-summary", {"root/tiny-7b/synthetic/8192/pred/summary.csv", text, std::nullopt, std::nullopt});
  const store::ImportedRow& row = source.rows.at(0);
  CHECK(row.model == "tiny-7b");
  REQUIRE(row.scores.size() == 2);
  CHECK(row.scores[1].task == "vt");
  CHECK(row.scores[1].length_tokens == 8192);
  CHECK_THAT(row.scores[1].percent, WithinAbs(76.52, 1e-12));
  CHECK(row.scores[1].n_samples == 500);
  CHECK_THROWS_WITH(read("ruler-summary", {"summary.csv", text, std::nullopt, 4096}), ContainsSubstring("--model"));
  CHECK_THROWS_WITH(read("ruler-summary", {"summary.csv", text, "m", std::nullopt}), ContainsSubstring("--length"));
  CHECK_THROWS_WITH(read("ruler-summary", {"s.csv", "0,1\nTasks,vt\nNulls,0/5\n", "m", 4096}),
                    ContainsSubstring("no row 'Score'"));
  CHECK_THROWS_WITH(read("ruler-summary", {"s.csv", "0,1\nTasks,vt\nScore,x\nNulls,0/5\n", "m", 4096}),
                    ContainsSubstring("s.csv:3: vt: 'x' is no score"));
}

TEST_CASE("import: all 13 tasks give the mean, a missing one leaves the length unscored", "[import]") {
  store::ImportedSource source;
  store::ImportedRow row;
  row.model = "m";
  const std::vector<std::string> tasks = {"niah_single_1",
                                          "niah_single_2",
                                          "niah_single_3",
                                          "niah_multikey_1",
                                          "niah_multikey_2",
                                          "niah_multikey_3",
                                          "niah_multivalue",
                                          "niah_multiquery",
                                          "vt",
                                          "cwe",
                                          "fwe",
                                          "qa_1",
                                          "qa_2"};
  for (const std::string& task : tasks) {
    row.scores.push_back({task, 4096, 90, 500});
    if (task != "cwe") row.scores.push_back({task, 8192, 99, 500});
  }
  row.scores.push_back({"extra_task", 4096, 0, 500});  // no task of RULER's
  source.rows.push_back(row);
  const analysis::ImportedResult result = analysis::summarise_import(source).results.at(0);
  REQUIRE(result.curve.size() == 2);
  CHECK_THAT(result.curve[0].score.value(), WithinAbs(90, 1e-9));
  CHECK_FALSE(result.curve[1].score.has_value());
  CHECK(result.effective.tokens == 4096);
}

TEST_CASE("import: what cannot be read is named with file and line", "[import][errors]") {
  const auto refused = [](const std::string& format, const std::string& text, const std::string& part) {
    INFO(text);
    CHECK_THROWS_WITH(read(format, {"f", text, std::nullopt, std::nullopt}), ContainsSubstring(part));
  };
  refused("lm-eval", "{", "f: no result file of lm-evaluation-harness");
  refused("lm-eval", "{\"a\": 1}", "results");
  refused("lm-eval", R"({"results": {"arc": {"acc,none": 0.4}}, "model_name": "m"})", "no score is given by length");
  refused("lm-eval", R"({"results": {"vt": {"4096": 0.4}}})", "add --model");
  refused("lm-eval", R"({"results": {"vt": {"4096": 40.0}}, "model_name": "m"})", "a share of 0 to 1 is expected");
  refused("ruler-published", "", "f: no header line");
  refused("ruler-published", "model,role\n\"a,b\n", "f:2: a quote is never closed");
  refused("ruler-published", "model,role\na\n", "f:2: 1 fields, the header has 2");
  refused("ruler-published", "model,role\na,model\n", "no column 'claimed'");
  refused("ruler-published", "model,claimed,effective_listed,self_reported,note,role,s4096\na,4K,4K,0,,model,x\n",
          "f:2: s4096 = 'x' is no number");
  CHECK_THROWS_AS(formats().at("ruler"), ConfigError);
}

TEST_CASE("import: rows go into the database once, and files of one source join", "[import][store]") {
  const test::TempFolder folder;
  const std::string path = folder.file("r.db");
  const auto summary = [&](std::int64_t length, const std::string& score) {
    const std::string text = "0,1\nTasks,vt\nScore," + score + "\nNulls,0/5\n";
    return read("ruler-summary", {"summary.csv", text, "m", length});
  };
  store::put_import(path, summary(4096, "90"));
  store::put_import(path, summary(8192, "80"));
  store::put_import(path, summary(8192, "70"));
  store::put_import(path, read_built_in("ruler-published"));
  store::put_import(path, read_built_in("ruler-published"));
  const std::vector<store::ImportedSource> sources = store::open_reader(path)->imports();
  REQUIRE(sources.size() == 2);
  CHECK(sources[0].name == "RULER summary.csv");
  REQUIRE(sources[0].rows.size() == 1);
  REQUIRE(sources[0].rows[0].scores.size() == 2);
  CHECK(sources[0].rows[0].scores[1].percent == 70);
  REQUIRE(sources[1].rows.size() == 45);
  CHECK(sources[1].rows[1].model == "Jamba-1.5-large");
  CHECK(analysis::summarise_import(sources[1]).n_contradictions == 5);
}

}  // namespace fathom::import
