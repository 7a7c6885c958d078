// What stands beside the scores: replies, fit, chance taken out, misses to search; and the history over runs.
#include <nlohmann/json.hpp>
#include <sstream>

#include "harness/store/result_store.h"
#include "reports/history/form.h"
#include "reports/quality_tables.h"
#include "reports/report.h"
#include "reports/run_charts.h"
#include "tests/support/catch.h"
#include "tests/support/made_up_run.h"
#include "tests/support/temp_folder.h"

namespace fathom::reports {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Twenty samples at 256 tokens: five right, the first two replies empty, the next one cut off, one prompt far too
/// short.
void put_odd_run(const std::string& path) {
  const auto sink = store::open_store(path);
  sink->begin_run(test::made_up_run_record("odd"));
  eval::VariantRecord rope = test::made_up_variant("rope");
  rope.resolved_json.insert(rope.resolved_json.size() - 1, R"(,"warnings":["m.gguf: strict <is> in force"])");
  sink->put_variant(rope);
  std::vector<eval::SampleRecord> rows;
  for (std::int64_t i = 0; i < 20; ++i) {
    eval::SampleRecord row = test::made_up_sample("rope", {"niah_multikey_1", 256, 5000}, i, i < 5 ? 1.0 : 0.0);
    row.sample.haystack_units = 10;
    // Filled to the last token but for one prompt that leaves 8 + 2 mean units and one more.
    const std::int64_t prompt_tokens = i == 7 ? 192 : 240;
    row.sample.prompt_ids.assign(static_cast<std::size_t>(prompt_tokens), 7);
    if (i < 2) {
      row.reply_text = " ";
      row.reply_ids.clear();
    }
    row.budget_hit = i == 2;
    rows.push_back(row);
  }
  sink->put_batch(rows);
  sink->end_run();
}

class OddRun {
 public:
  OddRun() {
    put_odd_run(folder_.file("odd.db"));
    summary_ = analysis::summarise_run(*store::open_reader(folder_.file("odd.db")), "odd", {});
  }
  TableSource source() const { return {summary_, labels_, false}; }
  std::string html() const {
    std::ostringstream out;
    registry().at("html").write(*store::open_reader(folder_.file("odd.db")), {}, out);
    return out.str();
  }

 private:
  test::TempFolder folder_;
  Labels labels_{"en"};
  analysis::RunSummary summary_;
};

}  // namespace

TEST_CASE("reports: empty replies and budget hits are counted beside the score", "[reports][quality]") {
  const OddRun run;
  const Table table = reply_table(run.source());
  REQUIRE(table.rows.size() == 1);
  CHECK(table.rows[0][3].text == "20");
  CHECK(table.rows[0][4].text == "10 %");
  CHECK(table.rows[0][4].detail == "n=2");
  CHECK(table.rows[0][5].text == "5 %");
  CHECK(table.rows[0][6].text == "2.7");  // 18 replies of three tokens
}

TEST_CASE("reports: a prompt that does not fill its length is a warning", "[reports][quality]") {
  const OddRun run;
  const Table table = fit_table(run.source());
  REQUIRE(table.rows.size() == 1);
  CHECK(table.rows[0][2].text == "1");
  CHECK(table.rows[0][3].text == "48");  // 256 - 192 - budget 16; the bound is 2 * 192 / 10 + 8 = 46
}

TEST_CASE("reports: chance is taken out by the in-text guess", "[reports][quality]") {
  const OddRun run;
  const Table table = corrected_table(run.source());
  REQUIRE(table.rows.size() == 1);
  // 25 % right where one of four answers in the text is guessed with 25 %.
  CHECK(table.rows[0][2].text == "0");
}

TEST_CASE("reports: misses can be searched without a network", "[reports][quality][html]") {
  const std::string html = OddRun().html();
  CHECK_THAT(html,
             ContainsSubstring("<form class=\"filters\"") && ContainsSubstring("<details data-variant=\"rope\">"));
  CHECK_THAT(html, ContainsSubstring("<option>niah_multikey_1</option>") && ContainsSubstring("<option>256</option>"));
  CHECK_THAT(html, ContainsSubstring("document.querySelectorAll(\"form.filters\")"));
  CHECK_THAT(html, !ContainsSubstring("<script src") && !ContainsSubstring("href=\"http"));
  CHECK_THAT(html, ContainsSubstring("<p><small>m.gguf: strict &lt;is&gt; in force</small></p>"));
}

TEST_CASE("reports: every chart is a file of its own with its numbers", "[reports][quality]") {
  const OddRun run;
  const std::vector<ChartFile> files = chart_files(run.source());
  REQUIRE(files.size() == 4);
  CHECK(files[0].name == "curve-niah-multikey-1-1.svg");
  CHECK(files[2].name == "heatmap-rope-niah-multikey-1.svg");
  CHECK_THAT(files[0].bytes,
             ContainsSubstring("xmlns=\"http://www.w3.org/2000/svg\"><style>svg {") && !ContainsSubstring("var(--"));
  CHECK_THAT(files[1].bytes, ContainsSubstring("variant,length,depth_percent,n,mean,low,high\nrope,256,,20,0.25,"));
  CHECK_THAT(files[3].bytes, ContainsSubstring("rope,256,50,20,0.25,"));
}

TEST_CASE("reports: the history over runs in every form", "[reports][history]") {
  const test::TempFolder folder;
  const std::string path = folder.file("nightly.db");
  {
    const auto sink = store::open_store(path);
    test::MadeUpSweep sweep = test::made_up_sweep("small");
    for (int night = 1; night <= 3; ++night) {
      eval::RunRecord record = test::made_up_run_record("night-" + std::to_string(night));
      test::put_made_up_run(*sink, record.name, sweep);
    }
  }
  const auto reader = store::open_reader(path);
  const auto history = analysis::run_history(*reader, {}, {});
  REQUIRE(history.size() == 2);
  REQUIRE(history[0].points.size() == 3);
  const auto written = [&](const std::string& form) {
    std::ostringstream out;
    history_forms().at(form).write(history, Labels("en"), out);
    return out.str();
  };
  CHECK(history_forms().names() == registry().names());
  const auto json = nlohmann::json::parse(written("json"));
  CHECK(json["variants"][0]["runs"][2]["run"] == "night-3");
  CHECK_THAT(written("html"),
             ContainsSubstring("<svg") && ContainsSubstring("night-2") && ContainsSubstring("</html>"));
  CHECK_THAT(written("markdown"), ContainsSubstring("| night-1 |"));
  CHECK_THAT(written("terminal"), ContainsSubstring("night-3"));
  CHECK_THAT(written("csv"), ContainsSubstring("rope,night-1,2025-01-02T03:04:05Z,"));
  std::ostringstream chinese;
  history_forms().at("html").write(history, Labels("zh"), chinese);
  CHECK_THAT(chinese.str(), ContainsSubstring("各次运行的有效上下文"));
  for (const HistoryFormEntry& form : history_forms().entries()) {
    std::ostringstream out;
    form.write({}, Labels("en"), out);
    CHECK_FALSE(out.str().empty());
  }
}

}  // namespace fathom::reports
