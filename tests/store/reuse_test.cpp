// Answers of one run taken over by another, and databases whose texts were dropped.

#include "harness/core/error.h"
#include "harness/store/result_reader.h"
#include "harness/store/result_store.h"
#include "harness/store/retention.h"
#include "harness/store/sqlite.h"
#include "tests/support/catch.h"
#include "tests/support/made_up_run.h"
#include "tests/support/temp_folder.h"

namespace fathom {
namespace {

using Catch::Matchers::ContainsSubstring;

eval::RunRecord run_record(const std::string& name) {
  eval::RunRecord record = test::made_up_run_record(name);
  record.config_fingerprint = "of " + name;
  return record;
}

/// As the evaluator asks: samples and keys, nothing answered.
std::vector<eval::SampleRecord> unanswered(std::vector<eval::SampleRecord> rows) {
  for (eval::SampleRecord& row : rows) {
    row.scores.clear();
    row.reply_text.clear();
    row.reply_ids.clear();
    row.seconds = 0;
  }
  return rows;
}

/// A database with four answers of run "short".
class ShortRun {
 public:
  ShortRun() {
    const auto sink = store::open_store(path());
    sink->begin_run(run_record("short"));
    sink->put_variant(test::made_up_variant("rope"));
    sink->put_batch(test::made_up_batch("rope", 0, 4));
    sink->end_run();
  }
  std::string path() const { return folder_.file("results.db"); }
  std::unique_ptr<eval::ResultSink> wider_run(const std::string& reuse, const std::string& name = "wide") const {
    store::StoreOptions options;
    options.reuse_run = reuse;
    auto sink = store::open_store(path(), options);
    sink->begin_run(run_record(name));
    sink->put_variant(test::made_up_variant("rope"));
    return sink;
  }
  std::string text(const std::string& sql) const {
    return store::Database({path(), store::OpenMode::kReadOnly}).query_text(sql);
  }
  std::int64_t number(const std::string& sql) const {
    return store::Database({path(), store::OpenMode::kReadOnly}).query_integer(sql);
  }

 private:
  test::TempFolder folder_;
};

}  // namespace

TEST_CASE("reuse: answers of the same keys are copied with reply, time and scores", "[store][reuse]") {
  const ShortRun database;
  const auto sink = database.wider_run("short");
  CHECK(sink->take_over(unanswered(test::made_up_batch("rope", 0, 4))));
  sink->put_batch(test::made_up_batch("rope", 4, 2));
  const auto reader = store::open_reader(database.path());
  const auto before = reader->outcomes("short"), after = reader->outcomes("wide");
  REQUIRE(before.size() == 4);
  REQUIRE(after.size() == 6);
  for (std::size_t i = 0; i < before.size(); ++i) {
    CHECK(after[i].value == before[i].value);
    CHECK(reader->answer(after[i].result_id).reply == reader->answer(before[i].result_id).reply);
  }
  CHECK(reader->score_means("wide").size() == reader->score_means("short").size());
  CHECK(database.number("SELECT count(DISTINCT seconds) FROM result WHERE sample_id = 1") == 1);
  CHECK(database.number("SELECT count(*) FROM sample") == 6);  // shared, not doubled
  CHECK(sink->finished_keys().size() == 6);
  CHECK_FALSE(reader->guesses("wide").empty());
}

TEST_CASE("reuse: a batch is taken over whole or not at all", "[store][reuse]") {
  const ShortRun database;
  const auto sink = database.wider_run("short");
  CHECK_FALSE(sink->take_over(unanswered(test::made_up_batch("rope", 2, 4))));
  CHECK(sink->finished_keys().empty());
  CHECK_FALSE(store::open_store(database.path())->take_over({}));  // no run to reuse
}

TEST_CASE("reuse: an answer that another try could change is asked again", "[store][reuse]") {
  const ShortRun database;
  {
    const auto sink = store::open_store(database.path());
    sink->begin_run(run_record("short"));
    auto rows = test::made_up_batch("rope", 3, 1);
    rows[0].status = eval::SampleStatus::kOutOfMemory;
    sink->put_batch(rows);
  }
  const auto sink = database.wider_run("short");
  CHECK(sink->take_over(unanswered(test::made_up_batch("rope", 0, 3))));
  CHECK_FALSE(sink->take_over(unanswered(test::made_up_batch("rope", 3, 1))));
}

TEST_CASE("reuse: the builds and machines of both runs are named, once", "[store][reuse]") {
  const ShortRun database;
  for (int i = 0; i < 3; ++i) {
    store::StoreOptions options;
    options.reuse_run = "short";
    const auto sink = store::open_store(database.path(), options);
    eval::RunRecord record = run_record("wide");
    record.hardware = "another machine";
    sink->begin_run(record);
  }
  const std::string theirs = database.text("SELECT hardware FROM run WHERE name = 'short'");
  CHECK(database.text("SELECT hardware FROM run WHERE name = 'wide'") == theirs + "; continued with another machine");
}

TEST_CASE("reuse: a run that is not there, and the run itself, are refused", "[store][reuse][errors]") {
  const ShortRun database;
  CHECK_THROWS_WITH(database.wider_run("shrot"), ContainsSubstring("holds no run 'shrot'"));
  CHECK_THROWS_WITH(database.wider_run("short", "short"), ContainsSubstring("can't reuse itself"));
  CHECK(store::open_reader(database.path())->run_names() == std::vector<std::string>{"short"});
}

TEST_CASE("dropped texts: scores stay, words go, a stopped run goes on", "[store][reuse]") {
  const ShortRun database;
  const auto before = store::open_reader(database.path())->outcomes("short");
  const auto replies = store::open_reader(database.path())->replies("short");
  CHECK(store::drop_texts(database.path()) == 4);
  CHECK(store::drop_texts(database.path()) == 0);
  CHECK(database.number("SELECT count(*) FROM prompt WHERE text <> '…' OR length(ids) > 0") == 0);
  CHECK(database.number("SELECT count(*) FROM completion WHERE reply_text <> '…' OR length(reply_ids) > 0") == 0);
  CHECK(database.number("SELECT count(*) FROM score WHERE answer NOT IN ('', '…')") == 0);
  const auto after = store::open_reader(database.path())->outcomes("short");
  REQUIRE(after.size() == before.size());
  for (std::size_t i = 0; i < after.size(); ++i) CHECK(after[i].value == before[i].value);
  REQUIRE(store::open_reader(database.path())->replies("short").size() == replies.size());
  CHECK(store::open_reader(database.path())->replies("short")[0].n_empty == replies[0].n_empty);

  const auto sink = store::open_store(database.path());
  sink->begin_run(run_record("short"));
  CHECK(sink->finished_keys().size() == 4);
  sink->put_batch(test::made_up_batch("rope", 4, 1));
  CHECK(database.number("SELECT count(*) FROM prompt WHERE text = '…'") == 4);
  sink->put_batch(test::made_up_batch("rope", 0, 1));  // asked again: its words come back, no second prompt
  CHECK(database.number("SELECT count(*) FROM prompt WHERE text = '…'") == 3);
  CHECK(database.number("SELECT count(*) FROM prompt") == 5);
}

}  // namespace fathom
