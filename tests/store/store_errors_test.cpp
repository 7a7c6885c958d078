#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>

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

using Catch::Matchers::ContainsSubstring;

/// The StoreError's text, or "no error".
std::string store_error(const std::function<void()>& action) {
  try {
    action();
  } catch (const StoreError& error) {
    return error.what();
  }
  return "no error";
}

/// Runs the action as a user without rights, so that permissions count even where tests run as root.
std::string store_error_as_nobody(const std::function<void()>& action) {
  int channel[2];
  REQUIRE(pipe(channel) == 0);
  const pid_t child = fork();
  if (child == 0) {
    close(channel[0]);
    const bool dropped = geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0);
    const std::string message = dropped ? store_error(action) : "could not drop rights";
    const bool sent = write(channel[1], message.data(), message.size()) == static_cast<ssize_t>(message.size());
    _exit(sent ? 0 : 1);
  }
  close(channel[1]);
  std::string message;
  char buffer[512];
  for (ssize_t n = 0; (n = read(channel[0], buffer, sizeof(buffer))) > 0;)
    message.append(buffer, static_cast<std::size_t>(n));
  close(channel[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return message;
}

void fill(const std::string& path) {
  auto sink = store::open_store(path);
  sink->begin_run(test::made_up_run_record("night"));
  sink->put_variant(test::made_up_variant("rope"));
  sink->put_batch({test::made_up_sample("rope", {}, 0, 1.0)});
}

}  // namespace

TEST_CASE("store: a newer schema is refused with both versions", "[store][errors]") {
  const test::TempFolder folder;
  const std::string path = folder.file("results.db");
  fill(path);
  store::Database({path, store::OpenMode::kReadWrite}).execute("PRAGMA user_version = 5");
  const std::string expected = "store: " + path + " has schema 5, this build reads up to 3; use a newer build";
  CHECK(store_error([&] { store::open_store(path); }) == expected);
  CHECK(store_error([&] { store::open_reader(path); }) == expected);
}

TEST_CASE("store: a file that is no database is refused and left alone", "[store][errors]") {
  const test::TempFolder folder;
  const std::string path = folder.file("notes.txt");
  const std::string text(5000, 'x');
  std::ofstream(path) << text;
  const std::string expected = "store: cannot read " + path +
                               ": file is not a database; it is no SQLite database; choose another file with --db";
  CHECK(store_error([&] { store::open_store(path); }) == expected);
  CHECK(store_error([&] { store::open_reader(path); }) == expected);
  std::ifstream in(path);
  CHECK(std::string(std::istreambuf_iterator<char>(in), {}) == text);
}

TEST_CASE("store: the database of another program is refused and left alone", "[store][errors]") {
  const test::TempFolder folder;
  const std::string path = folder.file("other.db");
  store::Database({path, store::OpenMode::kReadWrite}).execute("CREATE TABLE bookmark (url TEXT)");
  const std::string expected =
      "store: " + path + " is an SQLite database of another program; choose another file with --db";
  CHECK(store_error([&] { store::open_store(path); }) == expected);
  CHECK(store_error([&] { store::open_reader(path); }) == expected);
  store::Database database({path, store::OpenMode::kReadOnly});
  CHECK(database.query_integer("SELECT count(*) FROM sqlite_schema") == 1);
  CHECK(database.query_text("PRAGMA journal_mode") == "delete");
}

TEST_CASE("store: missing files and folders say what to do", "[store][errors]") {
  const test::TempFolder folder;
  const std::string path = folder.file("none.db");
  CHECK(store_error([&] { store::open_reader(path); }) ==
        "store: there is no database " + path + "; check the path, or fill it with 'fathom run CONFIG --db " + path +
            "'");
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK(store_error([&] { store::open_reader(folder.path().string()); }) ==
        "store: " + folder.path().string() + " is a folder; name the database file in it");
  CHECK_THAT(store_error([&] { store::open_store(folder.file("no/such/folder.db")); }),
             ContainsSubstring("store: cannot open " + folder.file("no/such/folder.db")) &&
                 ContainsSubstring("check that the folder exists"));
  std::ofstream(folder.file("empty.db")).flush();
  CHECK_THAT(store_error([&] { store::open_reader(folder.file("empty.db")); }), ContainsSubstring("holds no results"));
}

TEST_CASE("store: a read-only file is refused for writing and read for reports", "[store][errors]") {
  const test::TempFolder folder;
  const std::string path = folder.file("results.db");
  fill(path);
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(path, std::filesystem::perms(0444));
  CHECK_THAT(store_error_as_nobody([&] { store::open_store(path); }),
             ContainsSubstring("store: cannot write to " + path) && ContainsSubstring("readonly") &&
                 ContainsSubstring("change the permissions"));
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0555));
  CHECK(store_error_as_nobody([&] {
          if (store::open_reader(path)->outcomes("night").size() != 1) throw StoreError("rows are missing");
        }) == "no error");
  CHECK_THAT(store_error_as_nobody([&] { store::open_store(folder.file("new.db")); }),
             ContainsSubstring("store: cannot open " + folder.file("new.db")) &&
                 ContainsSubstring("choose another file with --db"));
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
}

TEST_CASE("store: a log left behind in a read-only folder is not overlooked", "[store][errors]") {
  const test::TempFolder folder;
  const std::string path = folder.file("results.db");
  const pid_t child = fork();
  if (child == 0) {
    fill(path);
    auto sink = store::open_store(path);
    sink->begin_run(test::made_up_run_record("night"));
    sink->put_batch({test::made_up_sample("rope", {}, 1, 1.0)});
    raise(SIGKILL);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(std::filesystem::file_size(path + "-wal") > 0);
  std::filesystem::remove(path + "-shm");
  std::filesystem::permissions(path, std::filesystem::perms(0444));
  std::filesystem::permissions(path + "-wal", std::filesystem::perms(0444));
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0555));
  CHECK_THAT(store_error_as_nobody([&] { store::open_reader(path); }),
             ContainsSubstring("has unfinished writes in " + path + "-wal") && ContainsSubstring("copy both files"));
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
}

TEST_CASE("store: a full disk is said to be one, and finished batches are kept", "[store][errors]") {
  const test::TempFolder folder;
  const std::string path = folder.file("results.db");
  store::StoreOptions options;
  options.max_size_bytes = 400 * 1024;
  auto sink = store::open_store(path, options);
  sink->begin_run(test::made_up_run_record("night"));
  sink->put_variant(test::made_up_variant("rope"));
  sink->put_batch({test::made_up_sample("rope", {}, 0, 1.0)});
  const std::string message = store_error([&] {
    std::vector<eval::SampleRecord> rows;
    for (std::int64_t i = 1; i < 2000; ++i) rows.push_back(test::made_up_sample("rope", {}, i, 1.0));
    sink->put_batch(rows);
  });
  CHECK(message == "store: cannot write to " + path +
                       ": database or disk is full; the disk or quota is full; free some space and run the same "
                       "command again, finished "
                       "batches are kept");
  CHECK(store::open_reader(path)->outcomes("night").size() == 1);
}

TEST_CASE("store: a database locked by another process is said to be so", "[store][errors]") {
  const test::TempFolder folder;
  const std::string path = folder.file("results.db");
  fill(path);
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  if (child == 0) {
    store::Database database({path, store::OpenMode::kReadWrite});
    const store::Transaction transaction(database);
    if (write(ready[1], "x", 1) != 1) _exit(1);
    pause();
  }
  char byte = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  store::StoreOptions options;
  options.busy_timeout_ms = 50;
  CHECK(store_error([&] { store::open_store(path, options)->begin_run(test::made_up_run_record("night")); }) ==
        "store: cannot use " + path +
            ": database is locked; another process is writing to it; wait for it to finish, or write to another file "
            "with --db");
  // Readers are not disturbed.
  CHECK(store::open_reader(path)->outcomes("night").size() == 1);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

TEST_CASE("store: an unknown run names the nearest", "[store][errors]") {
  const test::TempFolder folder;
  const std::string path = folder.file("results.db");
  fill(path);
  const auto reader = store::open_reader(path);
  CHECK(store_error([&] { reader->run("nihgt"); }) ==
        "store: " + path + " holds no run 'nihgt'; did you mean 'night'? it holds: night");
}

TEST_CASE("records: statuses read back and unknown ones are named", "[store][errors]") {
  using eval::SampleStatus;
  for (const SampleStatus status :
       {SampleStatus::kOk, SampleStatus::kTooShort, SampleStatus::kTooLong, SampleStatus::kOutOfMemory,
        SampleStatus::kNoPosition, SampleStatus::kEngineError, SampleStatus::kCancelled}) {
    CHECK(eval::parse_sample_status(eval::to_string(status)) == status);
  }
  CHECK_THROWS_AS(eval::parse_sample_status("fine"), DataError);
  CHECK_THROWS_WITH(
      eval::parse_sample_status("fine"),
      "unknown sample status 'fine'; known: ok, too_short, too_long, oom, no_position, engine_error, cancelled");
}

}  // namespace fathom
