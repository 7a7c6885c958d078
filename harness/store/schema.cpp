#include "harness/store/schema.h"

#include <fmt/format.h>

#include <string>

#include "harness/core/error.h"

namespace fathom::store {
namespace {

// Step i brings version i to version i + 1. A step that has been released never changes.
//
// Rows that statistics read (result, sample) are kept narrow; what is long (prompts, replies) stands in tables of its
// own, so that a report over a million samples scans about a hundred bytes a row.
constexpr const char* kSchemaSteps[kSchemaVersion] = {
    R"sql(
CREATE TABLE run (
  run_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  canonical_config TEXT NOT NULL,
  config_fingerprint TEXT NOT NULL,
  tool_version TEXT NOT NULL,
  source_revision TEXT NOT NULL,
  library_versions TEXT NOT NULL,
  hardware TEXT NOT NULL,
  seed INTEGER NOT NULL,
  started_at TEXT NOT NULL,
  finished_at TEXT
) STRICT;

CREATE TABLE variant (
  variant_id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES run,
  ordinal INTEGER NOT NULL,
  name TEXT NOT NULL,
  model TEXT NOT NULL,
  weights_hash TEXT NOT NULL,
  position TEXT NOT NULL,
  rope_base REAL,
  scaling TEXT NOT NULL,
  factor REAL,
  position_description TEXT NOT NULL,
  resolved_json TEXT NOT NULL,
  parameters INTEGER NOT NULL,
  claimed_context INTEGER NOT NULL,
  trained_context INTEGER,
  train_seed INTEGER,
  train_steps INTEGER,
  train_seconds REAL,
  train_accuracy REAL,
  mastered INTEGER,
  dtype TEXT NOT NULL,
  device TEXT NOT NULL,
  kernel TEXT NOT NULL,
  UNIQUE (run_id, name),
  UNIQUE (run_id, ordinal)
) STRICT;

CREATE TABLE task (
  task_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  variant TEXT NOT NULL,
  version INTEGER NOT NULL,
  metric TEXT NOT NULL,
  UNIQUE (name, variant, version, metric)
) STRICT;

CREATE TABLE prompt (
  prompt_id INTEGER PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,
  text TEXT NOT NULL,
  ids BLOB NOT NULL
) STRICT;

CREATE TABLE sample (
  sample_id INTEGER PRIMARY KEY,
  address TEXT NOT NULL,
  control TEXT NOT NULL,
  prompt_id INTEGER NOT NULL REFERENCES prompt,
  task_id INTEGER NOT NULL REFERENCES task,
  length_tokens INTEGER NOT NULL,
  depth_bp INTEGER,
  sample_index INTEGER NOT NULL,
  seed INTEGER NOT NULL,
  prompt_tokens INTEGER NOT NULL,
  generation_budget INTEGER NOT NULL,
  think_budget INTEGER NOT NULL,
  slack_tokens INTEGER NOT NULL,
  haystack_units INTEGER NOT NULL,
  whole_words INTEGER NOT NULL,
  key TEXT NOT NULL,
  answer_prefix TEXT NOT NULL,
  answer_text TEXT NOT NULL,
  UNIQUE (address, control, prompt_id)
) STRICT;

CREATE TABLE reference (
  sample_id INTEGER NOT NULL REFERENCES sample,
  ordinal INTEGER NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (sample_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE needle (
  sample_id INTEGER NOT NULL REFERENCES sample,
  ordinal INTEGER NOT NULL,
  gold INTEGER NOT NULL,
  requested_depth_bp INTEGER,
  actual_depth_bp INTEGER NOT NULL,
  first_token INTEGER NOT NULL,
  last_token INTEGER NOT NULL,
  PRIMARY KEY (sample_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE result (
  result_id INTEGER PRIMARY KEY,
  variant_id INTEGER NOT NULL REFERENCES variant,
  sample_id INTEGER NOT NULL REFERENCES sample,
  result_key TEXT NOT NULL,
  status TEXT NOT NULL,
  seconds REAL NOT NULL,
  computed_tokens INTEGER NOT NULL,
  peak_rss_bytes INTEGER NOT NULL,
  UNIQUE (variant_id, result_key)
) STRICT;

-- Everything that statistics need of a result, so that they never touch the table itself.
CREATE INDEX result_by_variant ON result (variant_id, sample_id, status);

CREATE TABLE completion (
  result_id INTEGER PRIMARY KEY REFERENCES result,
  reply_text TEXT NOT NULL,
  reply_ids BLOB NOT NULL,
  reply_tokens INTEGER NOT NULL,
  budget_hit INTEGER NOT NULL,
  status_detail TEXT NOT NULL,
  smallest_length_tokens INTEGER
) STRICT;

CREATE TABLE scorer (
  scorer_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  version INTEGER NOT NULL,
  UNIQUE (name, version)
) STRICT;

CREATE TABLE score (
  result_id INTEGER NOT NULL REFERENCES result,
  scorer_id INTEGER NOT NULL REFERENCES scorer,
  value REAL,
  answer TEXT NOT NULL,
  explanation TEXT NOT NULL,
  PRIMARY KEY (result_id, scorer_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE guess (
  run_id INTEGER NOT NULL REFERENCES run,
  task_id INTEGER NOT NULL REFERENCES task,
  length_tokens INTEGER NOT NULL,
  in_text_guess REAL NOT NULL,
  blind_guess REAL NOT NULL,
  PRIMARY KEY (run_id, task_id, length_tokens)
) STRICT, WITHOUT ROWID;

CREATE TABLE unbuilt_cell (
  cell_id INTEGER PRIMARY KEY,
  variant_id INTEGER NOT NULL REFERENCES variant,
  task TEXT NOT NULL,
  task_variant TEXT NOT NULL,
  length_tokens INTEGER NOT NULL,
  depth_bp INTEGER,
  status TEXT NOT NULL,
  detail TEXT NOT NULL,
  smallest_length_tokens INTEGER
) STRICT;

CREATE UNIQUE INDEX unbuilt_cell_place
  ON unbuilt_cell (variant_id, task, task_variant, length_tokens, ifnull(depth_bp, -1));
)sql",
    // 2: tasks with sizes of their own are marked, and results of other tools have tables of their own.
    R"sql(
ALTER TABLE guess ADD COLUMN own_length INTEGER NOT NULL DEFAULT 0;

CREATE TABLE import_source (
  source_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  format TEXT NOT NULL,
  provenance TEXT NOT NULL
) STRICT;

CREATE TABLE import_row (
  row_id INTEGER PRIMARY KEY,
  source_id INTEGER NOT NULL REFERENCES import_source,
  model TEXT NOT NULL,
  claimed_tokens INTEGER,
  listed_effective TEXT NOT NULL,
  threshold REAL NOT NULL,
  strict INTEGER NOT NULL,
  base REAL,
  self_reported INTEGER NOT NULL,
  note TEXT NOT NULL,
  provenance TEXT NOT NULL,
  UNIQUE (source_id, model)
) STRICT;

CREATE TABLE import_score (
  row_id INTEGER NOT NULL REFERENCES import_row,
  task TEXT NOT NULL,
  length_tokens INTEGER NOT NULL,
  score REAL NOT NULL,
  n_samples INTEGER,
  PRIMARY KEY (row_id, task, length_tokens)
) STRICT, WITHOUT ROWID;
)sql",
    // 3: what is kept of a run whose samples were dropped.
    R"sql(
ALTER TABLE run ADD COLUMN pruned_at TEXT;

CREATE TABLE kept_effective (
  variant_id INTEGER NOT NULL REFERENCES variant,
  rule TEXT NOT NULL,
  kind TEXT NOT NULL,
  tokens INTEGER,
  first_tested INTEGER,
  low_tokens INTEGER,
  high_tokens INTEGER,
  has_interval INTEGER NOT NULL,
  average REAL,
  PRIMARY KEY (variant_id, rule)
) STRICT, WITHOUT ROWID;

CREATE TABLE kept_score (
  variant_id INTEGER NOT NULL REFERENCES variant,
  task TEXT NOT NULL,
  length_tokens INTEGER NOT NULL,
  n_values INTEGER NOT NULL,
  mean REAL,
  low REAL,
  high REAL,
  PRIMARY KEY (variant_id, task, length_tokens)
) STRICT, WITHOUT ROWID;
)sql"};

[[noreturn]] void throw_newer_schema(const Database& database, std::int64_t version) {
  throw StoreError(fmt::format("store: {} has schema {}, this build reads up to {}; use a newer build", database.path(),
                               version, kSchemaVersion));
}

[[noreturn]] void throw_foreign_database(const Database& database) {
  throw StoreError(fmt::format("store: {} is an SQLite database of another program; choose another file with --db",
                               database.path()));
}

bool has_tables(Database& database) {
  return database.query_integer("SELECT count(*) FROM sqlite_schema WHERE type = 'table'") > 0;
}

/// The schema version; 0 for an empty file.
std::int64_t checked_version(Database& database) {
  const std::int64_t version = database.query_integer("PRAGMA user_version");
  const std::int64_t application = database.query_integer("PRAGMA application_id");
  const bool ours = application == kApplicationId;
  if (!ours && (version != 0 || application != 0 || has_tables(database))) throw_foreign_database(database);
  if (version > kSchemaVersion) throw_newer_schema(database, version);
  return version;
}

}  // namespace

void migrate(Database& database, int wanted) {
  if (checked_version(database) >= wanted) return;
  Transaction transaction(database);
  // Asked again under the write lock: another process may have migrated meanwhile.
  for (std::int64_t version = checked_version(database); version < wanted; ++version) {
    database.execute(kSchemaSteps[version]);
    database.execute(fmt::format("PRAGMA user_version = {}", version + 1));
  }
  database.execute(fmt::format("PRAGMA application_id = {}", kApplicationId));
  transaction.commit();
}

void check_schema(Database& database) {
  const std::int64_t version = checked_version(database);
  if (version == 0) {
    throw StoreError(
        fmt::format("store: {} holds no results; a run with --db {} fills it", database.path(), database.path()));
  }
  if (version < kSchemaVersion) {
    throw StoreError(fmt::format(
        "store: {} has schema {}, reports need {}; continue its run with this build, which brings it up to date",
        database.path(), version, kSchemaVersion));
  }
}

}  // namespace fathom::store
