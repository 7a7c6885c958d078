// What came with the second schema: samples without ids, imported results, older databases brought up to date.

#include "harness/core/error.h"
#include "harness/store/result_reader.h"
#include "harness/store/result_store.h"
#include "harness/store/schema.h"
#include "harness/store/sqlite.h"
#include "tests/support/catch.h"
#include "tests/support/made_up_run.h"
#include "tests/support/temp_folder.h"

namespace fathom {
namespace {

std::unique_ptr<eval::ResultSink> begun_store(const std::string& path) {
  auto sink = store::open_store(path);
  sink->begin_run(test::made_up_run_record("night"));
  sink->put_variant(test::made_up_variant("rope"));
  return sink;
}

}  // namespace

TEST_CASE("result_store: a sample read back without its ids is the stored one", "[store]") {
  const test::TempFolder folder;
  const std::string path = folder.file("results.db");
  auto sink = begun_store(path);
  sink->put_batch(test::made_up_batch("rope", 0, 2));
  std::vector<eval::SampleRecord> rows = test::made_up_batch("rope", 0, 3);
  for (eval::SampleRecord& row : rows) {
    row.sample.unlisted_prompt_tokens = row.sample.prompt_tokens();
    row.sample.prompt_ids.clear();
    row.result_key += " elsewhere";
  }
  sink->put_batch(rows);
  store::Database database({path, store::OpenMode::kReadOnly});
  CHECK(database.query_integer("SELECT count(*) FROM result") == 5);
  // Two are known; the third is stored with what is known of it.
  CHECK(database.query_integer("SELECT count(*) FROM sample") == 3);
  CHECK(database.query_integer("SELECT count(*) FROM sample WHERE prompt_tokens = 64") == 3);
}

TEST_CASE("result_store: a database of the first schema is brought up to date and keeps its rows", "[store]") {
  const test::TempFolder folder;
  const std::string path = folder.file("results.db");
  {
    store::Database database({path, store::OpenMode::kReadWrite});
    store::migrate(database, 1);
    database.execute(
        "INSERT INTO run VALUES (1, 'old', '', '', '', '', '', '', 1, '', NULL); INSERT INTO task VALUES (1, 'vt', "
        "'balanced', 1, 'all'); INSERT INTO guess VALUES (1, 1, 256, 0.5, 0.25)");
  }
  CHECK_THROWS_WITH(store::open_reader(path), Catch::Matchers::ContainsSubstring("has schema 1, reports need"));
  store::put_import(path, {"other", "lm-eval", "", {}});
  const auto reader = store::open_reader(path);
  CHECK(reader->run_names() == std::vector<std::string>{"old"});
  CHECK(reader->imports().size() == 1);
  REQUIRE(reader->tasks("old").size() == 1);
  CHECK(reader->tasks("old")[0].blind_guess == 0.25);
  CHECK_FALSE(reader->tasks("old")[0].own_length);
}

}  // namespace fathom
