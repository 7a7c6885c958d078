#include "harness/store/retention.h"

#include <fmt/format.h>

#include "harness/core/error.h"
#include "harness/store/schema.h"
#include "harness/store/sqlite.h"

namespace fathom::store {
namespace {

/// Opened for writing. Deleting a sample would search every result for it where foreign keys are enforced, as nothing
/// else ever asks for results by sample; the statements below keep the order themselves, and a check ends them.
void open_for_retention(Database& database) {
  migrate(database);
  database.execute("PRAGMA foreign_keys = OFF");
}

std::int64_t run_to_prune(Database& database, const std::string& run) {
  Statement& find = database.prepared("SELECT run_id FROM run WHERE name = ?");
  find.bind(0, run);
  if (const auto id = find.first_integer()) return *id;
  throw StoreError(fmt::format("store: {} holds no run '{}'", database.path(), run));
}

std::int64_t variant_to_keep(Database& database, std::int64_t run_id, const std::string& name) {
  Statement& find = database.prepared("SELECT variant_id FROM variant WHERE run_id = ? AND name = ?");
  find.bind(0, run_id).bind(1, name);
  if (const auto id = find.first_integer()) return *id;
  throw StoreError(fmt::format("store: {} holds no variant '{}' of this run", database.path(), name));
}

void put_kept(Database& database, std::int64_t run_id, const KeptRun& kept) {
  Statement& effective = database.prepared(
      "INSERT OR REPLACE INTO kept_effective (variant_id, rule, kind, tokens, first_tested, low_tokens, high_tokens, "
      "has_interval, average) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (const KeptEffective& one : kept.effective) {
    effective.bind(0, variant_to_keep(database, run_id, one.variant)).bind(1, one.rule).bind(2, one.kind);
    effective.bind(3, one.tokens).bind(4, one.first_tested).bind(5, one.low_tokens).bind(6, one.high_tokens);
    effective.bind(7, static_cast<std::int64_t>(one.has_interval)).bind(8, one.average).run();
  }
  Statement& score = database.prepared(
      "INSERT OR REPLACE INTO kept_score (variant_id, task, length_tokens, n_values, mean, low, high) "
      "VALUES (?, ?, ?, ?, ?, ?, ?)");
  for (const KeptScore& one : kept.scores) {
    score.bind(0, variant_to_keep(database, run_id, one.variant)).bind(1, one.task).bind(2, one.length_tokens);
    score.bind(3, one.n_values).bind(4, one.mean).bind(5, one.low).bind(6, one.high).run();
  }
}

std::int64_t delete_results(Database& database, std::int64_t run_id) {
  const std::string of_run = fmt::format(
      "(SELECT result_id FROM result WHERE variant_id IN (SELECT variant_id FROM variant WHERE run_id = {}))", run_id);
  database.execute("DELETE FROM score WHERE result_id IN " + of_run);
  database.execute("DELETE FROM completion WHERE result_id IN " + of_run);
  database.execute(
      fmt::format("DELETE FROM result WHERE variant_id IN (SELECT variant_id FROM variant WHERE run_id = {})", run_id));
  const std::int64_t n_results = database.changes();
  for (const char* table : {"reference", "needle", "sample"}) {
    database.execute(fmt::format("DELETE FROM {} WHERE sample_id NOT IN (SELECT sample_id FROM result)", table));
  }
  database.execute("DELETE FROM prompt WHERE prompt_id NOT IN (SELECT prompt_id FROM sample)");
  return n_results;
}

}  // namespace

std::vector<std::string> runs_older_than(const std::string& path, std::int64_t days) {
  Database database({path});
  open_for_retention(database);
  Statement select(database,
                   "SELECT name FROM run WHERE finished_at IS NOT NULL AND pruned_at IS NULL "
                   "AND julianday('now') - julianday(started_at) > ? ORDER BY started_at, run_id");
  select.bind(0, days);
  std::vector<std::string> out;
  while (select.step()) out.emplace_back(select.text(0));
  return out;
}

std::int64_t drop_samples(const std::string& path, const std::string& run, const KeptRun& kept) {
  Database database({path});
  open_for_retention(database);
  Transaction transaction(database);
  const std::int64_t run_id = run_to_prune(database, run);
  put_kept(database, run_id, kept);
  const std::int64_t n_results = delete_results(database, run_id);
  Statement& mark =
      database.prepared("UPDATE run SET pruned_at = strftime('%Y-%m-%dT%H:%M:%SZ', 'now') WHERE run_id = ?");
  mark.bind(0, run_id).run();
  Statement check(database, "PRAGMA foreign_key_check");
  FATHOM_CHECK(!check.step(), "retention leaves no row that refers to a dropped one");
  check.reset();
  transaction.commit();
  return n_results;
}

std::int64_t drop_texts(const std::string& path) {
  Database database({path});
  open_for_retention(database);
  Transaction transaction(database);
  Statement& prompts = database.prepared("UPDATE prompt SET text = ?1, ids = x'' WHERE text <> ?1");
  prompts.bind(0, kDroppedText).run();
  const std::int64_t n_prompts = database.changes();
  Statement& replies = database.prepared(
      "UPDATE completion SET reply_text = CASE WHEN trim(reply_text) = '' THEN '' ELSE ?1 END, reply_ids = x''");
  replies.bind(0, kDroppedText).run();
  // What a scorer took for the answer quotes the reply. Its explanation stays: curves by position are read from it.
  Statement& answers = database.prepared("UPDATE score SET answer = ?1 WHERE answer <> ''");
  answers.bind(0, kDroppedText).run();
  transaction.commit();
  return n_prompts;
}

void compact(const std::string& path) {
  Database database({path});
  database.execute("VACUUM");
}

}  // namespace fathom::store
