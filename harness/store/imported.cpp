#include "harness/store/imported.h"

#include "harness/store/imported_reader.h"
#include "harness/store/schema.h"
#include "harness/store/sqlite.h"

namespace fathom::store {
namespace {

std::int64_t put_source(Database& database, const ImportedSource& source) {
  Statement& put = database.prepared(
      "INSERT INTO import_source (name, format, provenance) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET format = "
      "excluded.format, provenance = excluded.provenance RETURNING source_id");
  return put.bind(0, source.name).bind(1, source.format).bind(2, source.provenance).run_returning();
}

std::int64_t put_row(Database& database, std::int64_t source_id, const ImportedRow& row) {
  Statement& put = database.prepared(
      "INSERT INTO import_row (source_id, model, claimed_tokens, listed_effective, threshold, strict, base, "
      "self_reported, note, provenance) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (source_id, model) DO UPDATE "
      "SET claimed_tokens = coalesce(excluded.claimed_tokens, claimed_tokens), listed_effective = "
      "excluded.listed_effective, threshold = excluded.threshold, strict = excluded.strict, base = excluded.base, "
      "self_reported = excluded.self_reported, note = excluded.note, provenance = excluded.provenance RETURNING "
      "row_id");
  put.bind(0, source_id).bind(1, row.model).bind(2, row.claimed_tokens).bind(3, row.listed_effective);
  put.bind(4, row.threshold_percent).bind(5, static_cast<std::int64_t>(row.strict)).bind(6, row.base_percent);
  put.bind(7, static_cast<std::int64_t>(row.self_reported)).bind(8, row.note).bind(9, row.provenance);
  return put.run_returning();
}

void put_score(Database& database, std::int64_t row_id, const ImportedScore& score) {
  Statement& put = database.prepared(
      "INSERT OR REPLACE INTO import_score (row_id, task, length_tokens, score, n_samples) VALUES (?, ?, ?, ?, ?)");
  put.bind(0, row_id).bind(1, score.task).bind(2, score.length_tokens).bind(3, score.percent);
  put.bind(4, score.n_samples).run();
}

std::vector<ImportedScore> read_scores(Database& database, std::int64_t row_id) {
  Statement select(database,
                   "SELECT task, length_tokens, score, n_samples FROM import_score WHERE row_id = ? ORDER BY task, "
                   "length_tokens");
  select.bind(0, row_id);
  std::vector<ImportedScore> out;
  while (select.step()) {
    out.push_back({std::string(select.text(0)), select.integer(1), select.real(2), select.optional_integer(3)});
  }
  return out;
}

std::vector<ImportedRow> read_rows(Database& database, std::int64_t source_id) {
  Statement select(database,
                   "SELECT row_id, model, claimed_tokens, listed_effective, threshold, strict, base, self_reported, "
                   "note, provenance FROM import_row WHERE source_id = ? ORDER BY row_id");
  select.bind(0, source_id);
  std::vector<ImportedRow> out;
  while (select.step()) {
    ImportedRow row;
    row.model = std::string(select.text(1));
    row.claimed_tokens = select.optional_integer(2);
    row.listed_effective = std::string(select.text(3));
    row.threshold_percent = select.real(4);
    row.strict = select.integer(5) != 0;
    row.base_percent = select.optional_real(6);
    row.self_reported = select.integer(7) != 0;
    row.note = std::string(select.text(8));
    row.provenance = std::string(select.text(9));
    row.scores = read_scores(database, select.integer(0));
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace

void put_import(const std::string& path, const ImportedSource& source) {
  Database database({path, OpenMode::kReadWrite});
  database.execute("PRAGMA foreign_keys = ON");
  migrate(database);
  Transaction transaction(database);
  const std::int64_t source_id = put_source(database, source);
  for (const ImportedRow& row : source.rows) {
    const std::int64_t row_id = put_row(database, source_id, row);
    for (const ImportedScore& score : row.scores) put_score(database, row_id, score);
  }
  transaction.commit();
}

std::vector<ImportedSource> read_imports(Database& database) {
  Statement select(database, "SELECT source_id, name, format, provenance FROM import_source ORDER BY source_id");
  std::vector<ImportedSource> out;
  while (select.step()) {
    out.push_back({std::string(select.text(1)), std::string(select.text(2)), std::string(select.text(3)),
                   read_rows(database, select.integer(0))});
  }
  return out;
}

}  // namespace fathom::store
