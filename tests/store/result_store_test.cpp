#include "harness/store/result_store.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "harness/core/error.h"
#include "harness/store/result_reader.h"
#include "harness/store/schema.h"
#include "harness/store/sqlite.h"
#include "tests/support/catch.h"
#include "tests/support/made_up_run.h"
#include "tests/support/temp_folder.h"

namespace fathom {
namespace {

std::unique_ptr<eval::ResultSink> begun_store(const std::string& path, const std::string& variant = "rope") {
  auto sink = store::open_store(path);
  sink->begin_run(test::made_up_run_record("night"));
  sink->put_variant(test::made_up_variant(variant));
  return sink;
}

std::int64_t count_rows(const std::string& path, const std::string& table) {
  store::Database database({path, store::OpenMode::kReadOnly});
  return database.query_integer("SELECT count(*) FROM " + table);
}

}  // namespace

TEST_CASE("result_store: what was put is read back", "[store]") {
  const test::TempFolder folder;
  const std::string path = folder.file("results.db");
  {
    auto sink = begun_store(path);
    sink->put_batch({test::made_up_sample("rope", {"vt", 512, std::nullopt}, 3, 0.6),
                     test::made_up_sample("rope", {}, 0, 1.0), test::made_up_sample("rope", {}, 1, 0.0)});
    sink->end_run();
  }
  const auto reader = store::open_reader(path);
  CHECK(reader->run_names() == std::vector<std::string>{"night"});
  const store::RunInfo info = reader->run("night");
  CHECK(info.run.canonical_config == test::made_up_run_record("night").canonical_config);
  CHECK(info.run.started_at == "2025-01-02T03:04:05Z");
  CHECK(info.finished_at.size() == 20);
  REQUIRE(info.variants.size() == 1);
  CHECK(info.variants[0].rope_base == std::optional<double>(10000));
  CHECK_FALSE(info.variants[0].factor.has_value());
  CHECK(info.variants[0].mastered == std::optional<bool>(true));

  const auto tasks = reader->tasks("night");
  REQUIRE(tasks.size() == 2);
  CHECK(tasks[0].name == "niah_single_2");
  CHECK(tasks[0].metric == "all");
  CHECK(tasks[1].name == "vt");

  const auto rows = reader->outcomes("night");
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].task == 0);
  CHECK(rows[0].index == 0);
  CHECK(rows[0].depth_bp == std::optional<std::int32_t>(5000));
  CHECK(rows[0].value == std::optional<double>(1.0));
  CHECK(rows[1].value == std::optional<double>(0.0));
  CHECK(rows[2].task == 1);
  CHECK_FALSE(rows[2].depth_bp.has_value());
  CHECK(rows[2].value == std::optional<double>(0.6));
  CHECK(reader->scorers("night") == std::vector<std::string>{"all", "first", "lp"});

  const auto means = reader->score_means("night");
  REQUIRE(means.size() == 4);  // "first" is NULL everywhere
  CHECK(means[0].scorer == "all");
  CHECK(means[0].n_samples == 2);
  CHECK(means[0].mean == 0.5);
  CHECK(means[3].scorer == "lp");
  CHECK(means[3].task == 1);
  CHECK(means[3].length_tokens == 512);

  const auto guesses = reader->guesses("night");
  REQUIRE(guesses.size() == 2);
  CHECK(guesses[0].in_text_guess == 1.0);
  const auto costs = reader->costs("night");
  REQUIRE(costs.size() == 2);
  CHECK(costs[0].length_tokens == 256);
  CHECK(costs[0].n_samples == 2);
  CHECK(costs[0].computed_tokens == 256);
}

TEST_CASE("result_store: a score that was not given is NULL, not a number", "[store]") {
  const test::TempFolder folder;
  const std::string path = folder.file("results.db");
  begun_store(path)->put_batch({test::made_up_sample("rope", {}, 0, std::nullopt)});
  const auto reader = store::open_reader(path);
  REQUIRE(reader->outcomes("night").size() == 1);
  CHECK_FALSE(reader->outcomes("night")[0].value.has_value());
  CHECK_FALSE(reader->outcomes("night", "first")[0].value.has_value());
  store::Database database({path, store::OpenMode::kReadOnly});
  CHECK(database.query_integer("SELECT count(*) FROM score WHERE value IS NULL") == 2);
  CHECK(database.query_integer("SELECT count(*) FROM score WHERE value IS NOT NULL") == 0);
}

TEST_CASE("result_store: unicode and hostile names come back unchanged", "[store]") {
  const test::TempFolder folder;
  const std::string path = folder.file("ergebnisse zürich 結果 100%?#.db");
  const std::string name = "rope θ=10⁴ “naïve” '; DROP TABLE run; -- 模型";
  begun_store(path, name)->put_batch({test::made_up_sample(name, {}, 0, 1.0)});
  const auto reader = store::open_reader(path);
  CHECK(reader->run("night").variants[0].name == name);
  CHECK(reader->outcomes("night").size() == 1);
}

TEST_CASE("result_store: a rolled-back batch leaves no rows", "[store]") {
  const test::TempFolder folder;
  const std::string path = folder.file("results.db");
  auto sink = begun_store(path);
  auto rows = test::made_up_batch("rope", 0, 5);
  rows.push_back(test::made_up_sample("no such variant", {}, 5, 1.0));
  CHECK_THROWS_AS(sink->put_batch(rows), StoreError);
  for (const char* table :
       {"result", "sample", "prompt", "score", "completion", "task", "scorer", "guess", "reference", "needle"}) {
    INFO(table);
    CHECK(count_rows(path, table) == 0);
  }
  // The store goes on as if the batch had never been.
  rows.pop_back();
  sink->put_batch(rows);
  CHECK(count_rows(path, "result") == 5);
}

TEST_CASE("result_store: a batch put twice is stored once, with its newest values", "[store]") {
  const test::TempFolder folder;
  const std::string path = folder.file("results.db");
  auto sink = begun_store(path);
  auto rows = test::made_up_batch("rope", 0, 4);
  sink->put_batch(rows);
  rows[1].scores = {{"all", 1, 0.5, "second try", ""}};
  sink->put_batch(rows);
  CHECK(count_rows(path, "result") == 4);
  CHECK(count_rows(path, "completion") == 4);
  CHECK(count_rows(path, "sample") == 4);
  CHECK(count_rows(path, "score") == 3 * 3 + 1);
  CHECK(store::open_reader(path)->outcomes("night")[1].value == std::optional<double>(0.5));
}

TEST_CASE("result_store: a prompt is stored once for all variants", "[store]") {
  const test::TempFolder folder;
  const std::string path = folder.file("results.db");
  auto sink = begun_store(path);
  sink->put_variant(test::made_up_variant("alibi"));
  sink->put_batch(test::made_up_batch("rope", 0, 4));
  sink->put_batch(test::made_up_batch("alibi", 0, 4));
  CHECK(count_rows(path, "prompt") == 4);
  CHECK(count_rows(path, "sample") == 4);
  CHECK(count_rows(path, "result") == 8);
}

TEST_CASE("result_store: only final statuses count as finished", "[store]") {
  const test::TempFolder folder;
  auto sink = begun_store(folder.file("results.db"));
  using eval::SampleStatus;
  std::set<std::string> expected;
  std::vector<eval::SampleRecord> rows;
  for (const SampleStatus status :
       {SampleStatus::kOk, SampleStatus::kTooShort, SampleStatus::kTooLong, SampleStatus::kNoPosition,
        SampleStatus::kOutOfMemory, SampleStatus::kEngineError, SampleStatus::kCancelled}) {
    rows.push_back(test::made_up_sample("rope", {}, static_cast<std::int64_t>(rows.size()), std::nullopt));
    rows.back().status = status;
    if (rows.size() <= 4) expected.insert(rows.back().result_key);
  }
  sink->put_batch(rows);
  CHECK(sink->finished_keys() == expected);
  // Another run of the same database has not finished them.
  auto other = store::open_store(folder.file("results.db"));
  other->begin_run(test::made_up_run_record("other"));
  CHECK(other->finished_keys().empty());
}

TEST_CASE("result_store: a run of equal configuration continues", "[store]") {
  const test::TempFolder folder;
  const std::string path = folder.file("results.db");
  begun_store(path)->put_batch(test::made_up_batch("rope", 0, 3));
  auto sink = store::open_store(path);
  eval::RunRecord run = test::made_up_run_record("night");
  run.hardware = "another processor";
  sink->begin_run(run);
  eval::VariantRecord variant = test::made_up_variant("rope");
  variant.train_seconds.reset();
  sink->put_variant(variant);
  CHECK(sink->finished_keys().size() == 3);
  sink->put_batch(test::made_up_batch("rope", 3, 2));
  const store::RunInfo info = store::open_reader(path)->run("night");
  CHECK(info.variants.size() == 1);
  CHECK(info.variants[0].train_seconds == std::optional<double>(61.5));
  CHECK(info.run.hardware == "made-up processor, 2 cores, 24 GiB; continued with another processor");
  CHECK(info.finished_at.empty());
  CHECK(store::open_reader(path)->outcomes("night").size() == 5);
}

TEST_CASE("result_store: a run of another configuration is refused with what differs", "[store][errors]") {
  const test::TempFolder folder;
  const std::string path = folder.file("results.db");
  begun_store(path);
  eval::RunRecord run = test::made_up_run_record("night");
  run.canonical_config.replace(run.canonical_config.find("samples = 10"), 12, "samples = 25");
  run.config_fingerprint = "another";
  auto sink = store::open_store(path);
  CHECK_THROWS_WITH(sink->begin_run(run),
                    "store: " + path +
                        " holds a run 'night' with another configuration:\n  sweep.samples: 10 before, 25 now\n"
                        "give this one another name (--set name=NEW) or another database (--db FILE)");
  CHECK_THROWS_AS(sink->begin_run(run), StoreError);
  CHECK_THROWS_AS(sink->put_batch({}), InvariantError);
  run.name = "night 2";
  CHECK_NOTHROW(sink->begin_run(run));
  CHECK(store::open_reader(path)->run_names() == std::vector<std::string>{"night", "night 2"});
}

TEST_CASE("result_store: unbuilt cells are kept once, with their reason", "[store]") {
  const test::TempFolder folder;
  const std::string path = folder.file("results.db");
  auto sink = begun_store(path);
  eval::CellRecord cell{
      "rope", {"vt", task::TaskVariant::kRuler}, 128, std::nullopt, eval::SampleStatus::kTooShort, "first", 187};
  sink->put_cells({cell});
  cell.detail = "second";
  eval::CellRecord deep = cell;
  deep.depth_bp = 5000;
  deep.status = eval::SampleStatus::kOutOfMemory;
  sink->put_cells({cell, deep});
  const auto cells = store::open_reader(path)->unbuilt_cells("night");
  REQUIRE(cells.size() == 2);
  CHECK(cells[0].detail == "second");
  CHECK(cells[0].task.full() == "vt@ruler");
  CHECK(cells[0].smallest_length_tokens == std::optional<std::int64_t>(187));
  CHECK(cells[1].status == eval::SampleStatus::kOutOfMemory);
  CHECK(cells[1].depth_bp == std::optional<std::int32_t>(5000));
}

TEST_CASE("result_store: misses show the end of the prompt in whole characters", "[store]") {
  const test::TempFolder folder;
  const std::string path = folder.file("results.db");
  auto sink = begun_store(path);
  std::vector<eval::SampleRecord> rows;
  for (std::int64_t i = 0; i < 9; ++i) {
    rows.push_back(test::made_up_sample("rope", {}, i, i == 0 ? 1.0 : 0.0));
    std::string text = "x";
    for (int k = 0; k < 200; ++k) text += "\xE6\xA8\xA1";  // three bytes a character: 240 is no multiple of the offset
    rows.back().sample.prompt_text = text + std::to_string(i);
  }
  rows[8].status = eval::SampleStatus::kEngineError;
  sink->put_batch(rows);
  const auto reader = store::open_reader(path);
  const auto misses = reader->misses("night", reader->outcomes("night"), 5);
  REQUIRE(misses.size() == 5);
  CHECK(misses[0].index == 1);
  CHECK(misses[0].expected == "1007919");
  CHECK(misses[0].prompt_tail.size() <= 240);
  CHECK(misses[0].prompt_tail.substr(0, 3) == "\xE6\xA8\xA1");
  CHECK(misses[0].prompt_tail.back() == '1');
  CHECK(reader->misses("night", reader->outcomes("night"), 0).empty());
}

TEST_CASE("result_store: controls are kept apart from the scores", "[store]") {
  const test::TempFolder folder;
  const std::string path = folder.file("results.db");
  auto sink = begun_store(path);
  std::vector<eval::SampleRecord> rows = test::made_up_batch("rope", 0, 4);
  for (std::int64_t i = 0; i < 4; ++i) {
    rows.push_back(test::made_up_sample("rope", {}, i, i == 0 ? 1.0 : 0.0));
    rows.back().control = "no_needle";
    rows.back().result_key += "control";
  }
  sink->put_batch(rows);
  const auto reader = store::open_reader(path);
  CHECK(reader->outcomes("night").size() == 4);
  const auto controls = reader->controls("night");
  REQUIRE(controls.size() == 1);
  CHECK(controls[0].control == "no_needle");
  CHECK(controls[0].n_samples == 4);
  CHECK(controls[0].mean == 0.25);
}

TEST_CASE("result_store: a killed writer loses at most the batch in flight", "[store]") {
  const test::TempFolder folder;
  const std::string path = folder.file("results.db");
  constexpr std::int64_t kBatch = 40;
  int acknowledge[2];
  REQUIRE(pipe(acknowledge) == 0);
  const pid_t child = fork();
  if (child == 0) {
    close(acknowledge[0]);
    auto sink = begun_store(path);
    for (std::int64_t batch = 0;; ++batch) {
      sink->put_batch(test::made_up_batch("rope", batch * kBatch, kBatch));
      if (write(acknowledge[1], "x", 1) != 1) _exit(1);
    }
  }
  close(acknowledge[1]);
  std::int64_t n_acknowledged = 0;
  char byte = 0;
  while (n_acknowledged < 7 && read(acknowledge[0], &byte, 1) == 1) ++n_acknowledged;
  usleep(1500);  // into the middle of the next batch
  kill(child, SIGKILL);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  while (read(acknowledge[0], &byte, 1) == 1) ++n_acknowledged;
  close(acknowledge[0]);

  const auto n_rows = static_cast<std::int64_t>(store::open_reader(path)->outcomes("night").size());
  CHECK(n_rows % kBatch == 0);
  CHECK(n_rows >= n_acknowledged * kBatch);
  CHECK(n_rows <= (n_acknowledged + 1) * kBatch);
  store::Database database({path, store::OpenMode::kReadWrite});
  CHECK(database.query_text("PRAGMA quick_check") == "ok");
  // The next process simply goes on.
  auto sink = store::open_store(path);
  sink->begin_run(test::made_up_run_record("night"));
  CHECK(static_cast<std::int64_t>(sink->finished_keys().size()) == n_rows);
  sink->put_batch(test::made_up_batch("rope", n_rows, kBatch));
}

TEST_CASE("result_store: a writer killed inside a transaction leaves nothing of it", "[store]") {
  const test::TempFolder folder;
  const std::string path = folder.file("results.db");
  begun_store(path)->put_batch(test::made_up_batch("rope", 0, 2));
  const pid_t child = fork();
  if (child == 0) {
    store::Database database({path, store::OpenMode::kReadWrite});
    // Small enough a cache that half-written pages reach the log before the end.
    database.execute("PRAGMA cache_size = 1");
    const store::Transaction transaction(database);
    database.execute("UPDATE prompt SET text = text || hex(zeroblob(50000))");
    database.execute("UPDATE result SET status = 'cancelled'");
    raise(SIGKILL);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  const auto rows = store::open_reader(path)->outcomes("night");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].status == eval::SampleStatus::kOk);
}

TEST_CASE("result_reader: it keeps its view while a run writes on", "[store]") {
  const test::TempFolder folder;
  const std::string path = folder.file("results.db");
  auto sink = begun_store(path);
  sink->put_batch(test::made_up_batch("rope", 0, 3));
  const auto reader = store::open_reader(path);
  CHECK(reader->outcomes("night").size() == 3);
  sink->put_batch(test::made_up_batch("rope", 3, 3));
  CHECK(reader->outcomes("night").size() == 3);
  CHECK(store::open_reader(path)->outcomes("night").size() == 6);
}

TEST_CASE("result_reader: nothing is left beside a database that nobody writes", "[store]") {
  const test::TempFolder folder;
  const std::string path = folder.file("results.db");
  const auto has_log = [&] { return std::filesystem::exists(path + "-wal") || std::filesystem::exists(path + "-shm"); };
  begun_store(path)->put_batch(test::made_up_batch("rope", 0, 3));
  CHECK_FALSE(has_log());
  {
    const auto reader = store::open_reader(path);
    CHECK(store::open_reader(path)->outcomes("night").size() == 3);  // the other one is still reading
    CHECK(reader->outcomes("night").size() == 3);
  }
  CHECK_FALSE(has_log());

  // The log of a run that goes on is not touched.
  auto sink = begun_store(path);
  sink->put_batch(test::made_up_batch("rope", 3, 3));
  CHECK(store::open_reader(path)->outcomes("night").size() == 6);
  CHECK(has_log());
  sink->put_batch(test::made_up_batch("rope", 6, 3));
  CHECK(store::open_reader(path)->outcomes("night").size() == 9);
}

TEST_CASE("result_store: a hundred thousand rows are read in about a second", "[store][slow]") {
  const test::TempFolder folder;
  const std::string path = folder.file("results.db");
  auto sink = begun_store(path);
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t batch = 0; batch < 200; ++batch) sink->put_batch(test::made_up_batch("rope", batch * 500, 500));
  const auto written = std::chrono::steady_clock::now();
  const auto reader = store::open_reader(path);
  CHECK(reader->outcomes("night").size() == 100000);
  const auto read = std::chrono::steady_clock::now();
  CHECK(reader->misses("night", reader->outcomes("night"), 5).size() == 5);
  CHECK(reader->costs("night").size() == 1);
  const auto rest = std::chrono::steady_clock::now();
  const auto seconds = [](auto span) { return std::chrono::duration<double>(span).count(); };
  WARN("100,000 rows: written in " << seconds(written - start) << " s, outcomes " << seconds(read - written)
                                   << " s, misses and costs " << seconds(rest - read) << " s");
  // Generous: the point is that nothing is quadratic.
  CHECK(seconds(read - written) < 3);
}

}  // namespace fathom
