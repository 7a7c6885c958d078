#include "harness/store/result_store.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <string_view>

#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/core/text_util.h"
#include "harness/store/config_diff.h"
#include "harness/store/schema.h"
#include "harness/store/sqlite.h"

namespace fathom::store {
namespace {

constexpr std::size_t kMaxDifferencesShown = 12;
/// Another try would not change these.
constexpr std::string_view kFinalStatuses = "('ok', 'too_short', 'too_long', 'no_position')";

/// Token ids as little-endian 32-bit integers, the layout that every other tool can read.
std::string token_id_bytes(const TokenIds& ids) {
  std::string bytes(ids.size() * 4, '\0');
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto value = static_cast<std::uint32_t>(ids[i]);
    for (std::size_t k = 0; k < 4; ++k) bytes[4 * i + k] = static_cast<char>((value >> (8 * k)) & 0xffU);
  }
  return bytes;
}

template <typename T>
std::optional<std::int64_t> widened(const std::optional<T>& value) {
  if (!value) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

/// Rows of one run can come from several builds or machines; all of them are named.
std::string joined_provenance(const std::string& before, const std::string& now) {
  const std::string addition = "; continued with " + now;
  if (before == now || ends_with(before, addition)) return before;
  return before + addition;
}

class SqliteResultStore : public eval::ResultSink {
 public:
  SqliteResultStore(const std::string& path, const StoreOptions& options)
      : database_({path, OpenMode::kReadWrite, options.busy_timeout_ms}), reuse_run_(options.reuse_run) {
    database_.execute("PRAGMA foreign_keys = ON");
    migrate(database_);
    // A file system without shared memory answers with another mode; that is slower, not wrong.
    database_.query_text("PRAGMA journal_mode = WAL");
    database_.execute("PRAGMA synchronous = NORMAL");
    if (options.max_size_bytes) {
      const std::int64_t page_size = database_.query_integer("PRAGMA page_size");
      database_.execute(fmt::format("PRAGMA max_page_count = {}", *options.max_size_bytes / page_size));
    }
  }

  void begin_run(const eval::RunRecord& run) override;
  void put_variant(const eval::VariantRecord& variant) override;
  std::set<std::string> finished_keys() override;
  void put_batch(const std::vector<eval::SampleRecord>& rows) override;
  bool take_over(const std::vector<eval::SampleRecord>& rows) override;
  void put_cells(const std::vector<eval::CellRecord>& cells) override;
  void end_run() override;

 private:
  void insert_run(const eval::RunRecord& run);
  void continue_run(const eval::RunRecord& stored, const eval::RunRecord& run);
  [[noreturn]] void refuse_run(const eval::RunRecord& stored, const eval::RunRecord& run) const;
  std::int64_t run_id() const;
  /// Rows of two models, dtypes or kernels are never pooled under one variant.
  void refuse_changed_variant(const eval::VariantRecord& variant);
  std::int64_t variant_id(const std::string& name);
  std::int64_t task_id(const task::Sample& sample);
  std::int64_t scorer_id(const eval::ScoreValue& score);
  std::int64_t prompt_id(const task::Sample& sample);
  std::int64_t sample_id(const eval::SampleRecord& row);
  void insert_sample_parts(std::int64_t id, const task::Sample& sample);
  std::int64_t put_row(const eval::SampleRecord& row);
  /// Provenance of the run to be reused becomes part of this one's.
  void name_reused_run();
  /// A result of the run to be reused; nothing if it has no final one of that key.
  std::optional<std::int64_t> reusable_result(const eval::SampleRecord& row);
  void copy_answer(std::int64_t from, std::int64_t to);
  void put_guess(const eval::SampleRecord& row);
  void put_scores(std::int64_t result_id, const std::vector<eval::ScoreValue>& scores);

  Database database_;
  const std::string reuse_run_;
  std::optional<std::int64_t> run_id_;
};

std::int64_t SqliteResultStore::run_id() const {
  FATHOM_CHECK(run_id_.has_value(), "begin_run comes first");
  return *run_id_;
}

void SqliteResultStore::begin_run(const eval::RunRecord& run) {
  Transaction transaction(database_);
  Statement& find = database_.prepared(
      "SELECT run_id, canonical_config, config_fingerprint, tool_version, source_revision, library_versions, hardware "
      "FROM run WHERE name = ?");
  find.bind(0, run.name);
  if (find.step()) {
    eval::RunRecord stored;
    stored.name = run.name;
    stored.canonical_config = std::string(find.text(1));
    stored.config_fingerprint = std::string(find.text(2));
    stored.tool_version = std::string(find.text(3));
    stored.source_revision = std::string(find.text(4));
    stored.library_versions = std::string(find.text(5));
    stored.hardware = std::string(find.text(6));
    const std::int64_t stored_id = find.integer(0);
    find.reset();
    if (stored.config_fingerprint != run.config_fingerprint) refuse_run(stored, run);
    run_id_ = stored_id;
    continue_run(stored, run);
  } else {
    insert_run(run);
  }
  if (!reuse_run_.empty()) name_reused_run();
  transaction.commit();
}

void SqliteResultStore::insert_run(const eval::RunRecord& run) {
  Statement& insert = database_.prepared(
      "INSERT INTO run (name, canonical_config, config_fingerprint, tool_version, source_revision, library_versions, "
      "hardware, "
      "seed, started_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING run_id");
  insert.bind(0, run.name).bind(1, run.canonical_config).bind(2, run.config_fingerprint).bind(3, run.tool_version);
  insert.bind(4, run.source_revision).bind(5, run.library_versions).bind(6, run.hardware).bind(7, run.seed);
  run_id_ = insert.bind(8, run.started_at).run_returning();
}

void SqliteResultStore::continue_run(const eval::RunRecord& stored, const eval::RunRecord& run) {
  // The text may differ where the fingerprint does not look ([report], threads): the newest wishes count.
  Statement& update = database_.prepared(
      "UPDATE run SET canonical_config = ?, tool_version = ?, source_revision = ?, library_versions = ?, hardware = ?, "
      "finished_at = NULL WHERE run_id = ?");
  update.bind(0, run.canonical_config).bind(1, joined_provenance(stored.tool_version, run.tool_version));
  update.bind(2, joined_provenance(stored.source_revision, run.source_revision));
  update.bind(3, joined_provenance(stored.library_versions, run.library_versions));
  update.bind(4, joined_provenance(stored.hardware, run.hardware)).bind(5, run_id()).run();
}

void SqliteResultStore::refuse_run(const eval::RunRecord& stored, const eval::RunRecord& run) const {
  std::vector<std::string> lines = config_differences(stored.canonical_config, run.canonical_config);
  if (lines.empty())
    lines.push_back(
        "the same keys, but the haystack text, the prompt pack, a tokenizer or a chat template has changed since");
  const std::size_t n_more = lines.size() > kMaxDifferencesShown ? lines.size() - kMaxDifferencesShown : 0;
  lines.resize(lines.size() - n_more);
  if (n_more > 0) lines.push_back(fmt::format("and {} more", n_more));
  throw StoreError(
      fmt::format("store: {} holds a run '{}' with another configuration:\n  {}\ngive this one another name (--set "
                  "name=NEW) or another "
                  "database (--db FILE)",
                  database_.path(), run.name, join(lines, "\n  ")));
}

void SqliteResultStore::refuse_changed_variant(const eval::VariantRecord& v) {
  Statement& find = database_.prepared(
      "SELECT weights_hash, position_description, dtype, kernel FROM variant WHERE run_id = ? AND name = ?");
  find.bind(0, run_id()).bind(1, v.name);
  if (!find.step()) return;
  const std::pair<const char*, const std::string*> facts[] = {{"weights", &v.weights_hash},
                                                              {"position settings", &v.position_description},
                                                              {"dtype", &v.dtype},
                                                              {"kernel", &v.kernel}};
  std::string changed;
  for (int i = 0; i < 4; ++i) {
    const std::string before(find.text(i));
    if (before != *facts[i].second)
      changed += fmt::format("\n  {}: {} before, {} now", facts[i].first, before, *facts[i].second);
  }
  find.reset();
  if (changed.empty()) return;
  throw StoreError(
      fmt::format("store: variant '{}' of this run in {} was measured with something else:{}\ngive the run another "
                  "name (--set name=NEW) or another database (--db FILE)",
                  v.name, database_.path(), changed));
}

void SqliteResultStore::put_variant(const eval::VariantRecord& v) {
  refuse_changed_variant(v);
  // A continued run takes its checkpoint from the cache and may know less about the training than the first time.
  Statement& put = database_.prepared(
      "INSERT INTO variant (run_id, ordinal, name, model, weights_hash, position, rope_base, scaling, factor, "
      "position_description, "
      "resolved_json, parameters, claimed_context, trained_context, train_seed, train_steps, train_seconds, "
      "train_accuracy, mastered, "
      "dtype, device, kernel) VALUES (?1, (SELECT count(*) FROM variant WHERE run_id = ?1), ?2, ?3, ?4, ?5, ?6, ?7, "
      "?8, ?9, ?10, ?11, ?12, "
      "?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21) ON CONFLICT (run_id, name) DO UPDATE SET model = excluded.model, "
      "weights_hash = "
      "excluded.weights_hash, position = excluded.position, rope_base = excluded.rope_base, scaling = "
      "excluded.scaling, factor = "
      "excluded.factor, position_description = excluded.position_description, resolved_json = excluded.resolved_json, "
      "parameters = "
      "excluded.parameters, claimed_context = excluded.claimed_context, trained_context = excluded.trained_context, "
      "train_seed = "
      "coalesce(excluded.train_seed, train_seed), train_steps = coalesce(excluded.train_steps, train_steps), "
      "train_seconds = "
      "coalesce(excluded.train_seconds, train_seconds), train_accuracy = coalesce(excluded.train_accuracy, "
      "train_accuracy), mastered = "
      "coalesce(excluded.mastered, mastered), dtype = excluded.dtype, device = excluded.device, kernel = "
      "excluded.kernel");
  put.bind(0, run_id())
      .bind(1, v.name)
      .bind(2, v.model)
      .bind(3, v.weights_hash)
      .bind(4, v.position)
      .bind(5, v.rope_base);
  put.bind(6, v.scaling)
      .bind(7, v.factor)
      .bind(8, v.position_description)
      .bind(9, v.resolved_json)
      .bind(10, v.parameters);
  put.bind(11, v.claimed_context).bind(12, v.trained_context).bind(13, v.train_seed).bind(14, v.train_steps);
  put.bind(15, v.train_seconds).bind(16, v.train_accuracy).bind(17, widened(v.mastered));
  put.bind(18, v.dtype).bind(19, v.device).bind(20, v.kernel).run();
}

std::set<std::string> SqliteResultStore::finished_keys() {
  Statement& select = database_.prepared(
      fmt::format("SELECT result_key FROM variant JOIN result USING (variant_id) WHERE run_id = ? AND status IN {}",
                  kFinalStatuses));
  select.bind(0, run_id());
  std::set<std::string> keys;
  while (select.step()) keys.emplace(select.text(0));
  select.reset();
  return keys;
}

std::int64_t SqliteResultStore::variant_id(const std::string& name) {
  Statement& find = database_.prepared("SELECT variant_id FROM variant WHERE run_id = ? AND name = ?");
  find.bind(0, run_id()).bind(1, name);
  const auto found = find.first_integer();
  if (!found)
    throw StoreError(fmt::format("store: no variant '{}' was put into {} for this run; put_variant comes first", name,
                                 database_.path()));
  return *found;
}

std::int64_t SqliteResultStore::task_id(const task::Sample& sample) {
  Statement& find =
      database_.prepared("SELECT task_id FROM task WHERE name = ? AND variant = ? AND version = ? AND metric = ?");
  Statement& insert =
      database_.prepared("INSERT INTO task (name, variant, version, metric) VALUES (?, ?, ?, ?) RETURNING task_id");
  for (Statement* statement : {&find, &insert}) {
    statement->bind(0, sample.task).bind(1, task::to_string(sample.variant));
    statement->bind(2, static_cast<std::int64_t>(sample.task_version)).bind(3, task::to_string(sample.metric));
  }
  const auto found = find.first_integer();
  return found ? *found : insert.run_returning();
}

std::int64_t SqliteResultStore::scorer_id(const eval::ScoreValue& score) {
  Statement& find = database_.prepared("SELECT scorer_id FROM scorer WHERE name = ? AND version = ?");
  find.bind(0, score.scorer).bind(1, static_cast<std::int64_t>(score.scorer_version));
  if (const auto found = find.first_integer()) return *found;
  Statement& insert = database_.prepared("INSERT INTO scorer (name, version) VALUES (?, ?) RETURNING scorer_id");
  return insert.bind(0, score.scorer).bind(1, static_cast<std::int64_t>(score.scorer_version)).run_returning();
}

std::int64_t SqliteResultStore::prompt_id(const task::Sample& sample) {
  const std::string ids = token_id_bytes(sample.prompt_ids);
  // The same text is another row under another tokenizer.
  const std::string hash = hash_hex(sample.prompt_text + std::string(1, '\0') + ids);
  // A text that was dropped (retention) comes back with the next run that asks it.
  Statement& restore = database_.prepared("UPDATE prompt SET text = ?, ids = ? WHERE hash = ? AND length(ids) = 0");
  Statement& find = database_.prepared("SELECT prompt_id FROM prompt WHERE hash = ?");
  find.bind(0, hash);
  if (const auto found = find.first_integer()) {
    if (!ids.empty()) restore.bind(0, sample.prompt_text).bind_blob(1, ids).bind(2, hash).run();
    return *found;
  }
  Statement& insert = database_.prepared("INSERT INTO prompt (hash, text, ids) VALUES (?, ?, ?) RETURNING prompt_id");
  return insert.bind(0, hash).bind(1, sample.prompt_text).bind_blob(2, ids).run_returning();
}

std::int64_t SqliteResultStore::sample_id(const eval::SampleRecord& row) {
  const task::Sample& sample = row.sample;
  if (sample.prompt_ids.empty() && !sample.prompt_text.empty()) {
    // Read back from a file of prompts: the address alone says that it is the sample that is stored with its ids.
    Statement& known = database_.prepared("SELECT min(sample_id) FROM sample WHERE address = ? AND control = ?");
    known.bind(0, sample.address).bind(1, row.control);
    if (known.step() && !known.is_null(0)) {
      const std::int64_t id = known.integer(0);
      known.reset();
      return id;
    }
    known.reset();
  }
  const std::int64_t prompt = prompt_id(sample);
  Statement& find =
      database_.prepared("SELECT sample_id FROM sample WHERE address = ? AND control = ? AND prompt_id = ?");
  find.bind(0, sample.address).bind(1, row.control).bind(2, prompt);
  if (const auto found = find.first_integer()) return *found;
  Statement& insert = database_.prepared(
      "INSERT INTO sample (address, control, prompt_id, task_id, length_tokens, depth_bp, sample_index, seed, "
      "prompt_tokens, "
      "generation_budget, think_budget, slack_tokens, haystack_units, whole_words, key, answer_prefix, answer_text) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING sample_id");
  insert.bind(0, sample.address)
      .bind(1, row.control)
      .bind(2, prompt)
      .bind(3, task_id(sample))
      .bind(4, sample.length_tokens);
  insert.bind(5, widened(sample.depth_bp)).bind(6, sample.index).bind(7, static_cast<std::int64_t>(sample.seed));
  insert.bind(8, sample.prompt_tokens()).bind(9, sample.generation_budget).bind(10, sample.think_budget);
  insert.bind(11, sample.slack_tokens())
      .bind(12, sample.haystack_units)
      .bind(13, static_cast<std::int64_t>(sample.whole_words));
  insert.bind(14, sample.key).bind(15, sample.answer_prefix).bind(16, sample.answer_text);
  const std::int64_t id = insert.run_returning();
  insert_sample_parts(id, sample);
  return id;
}

void SqliteResultStore::insert_sample_parts(std::int64_t id, const task::Sample& sample) {
  Statement& reference = database_.prepared("INSERT INTO reference (sample_id, ordinal, text) VALUES (?, ?, ?)");
  for (std::size_t i = 0; i < sample.references.size(); ++i) {
    reference.bind(0, id).bind(1, static_cast<std::int64_t>(i)).bind(2, sample.references[i]).run();
  }
  Statement& needle = database_.prepared(
      "INSERT INTO needle (sample_id, ordinal, gold, requested_depth_bp, actual_depth_bp, first_token, last_token) "
      "VALUES (?, ?, ?, ?, ?, ?, ?)");
  for (std::size_t i = 0; i < sample.needles.size(); ++i) {
    const task::NeedlePlace& place = sample.needles[i];
    needle.bind(0, id).bind(1, static_cast<std::int64_t>(i)).bind(2, static_cast<std::int64_t>(place.gold));
    needle.bind(3, widened(place.requested_depth_bp)).bind(4, static_cast<std::int64_t>(place.actual_depth_bp));
    needle.bind(5, place.first_token).bind(6, place.last_token).run();
  }
}

void SqliteResultStore::put_batch(const std::vector<eval::SampleRecord>& rows) {
  run_id();
  Transaction transaction(database_);
  for (const eval::SampleRecord& row : rows) put_row(row);
  transaction.commit();
}

std::int64_t SqliteResultStore::put_row(const eval::SampleRecord& row) {
  Statement& put_result = database_.prepared(
      "INSERT INTO result (variant_id, sample_id, result_key, status, seconds, computed_tokens, peak_rss_bytes) "
      "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (variant_id, result_key) DO UPDATE SET sample_id = excluded.sample_id, "
      "status = "
      "excluded.status, seconds = excluded.seconds, computed_tokens = excluded.computed_tokens, peak_rss_bytes = "
      "excluded.peak_rss_bytes RETURNING result_id");
  put_result.bind(0, variant_id(row.variant))
      .bind(1, sample_id(row))
      .bind(2, row.result_key)
      .bind(3, eval::to_string(row.status));
  put_result.bind(4, row.seconds).bind(5, row.computed_tokens).bind(6, row.peak_rss_bytes);
  const std::int64_t result_id = put_result.run_returning();

  Statement& put_completion = database_.prepared(
      "INSERT OR REPLACE INTO completion (result_id, reply_text, reply_ids, reply_tokens, budget_hit, status_detail, "
      "smallest_length_tokens) VALUES (?, ?, ?, ?, ?, ?, ?)");
  put_completion.bind(0, result_id).bind(1, row.reply_text).bind_blob(2, token_id_bytes(row.reply_ids));
  put_completion.bind(3, static_cast<std::int64_t>(row.reply_ids.size()))
      .bind(4, static_cast<std::int64_t>(row.budget_hit));
  put_completion.bind(5, row.status_detail).bind(6, row.smallest_length_tokens).run();

  put_scores(result_id, row.scores);
  if (row.control.empty()) put_guess(row);
  return result_id;
}

// ---- answers of another run ----

void SqliteResultStore::name_reused_run() {
  Statement& find = database_.prepared(
      "SELECT tool_version, source_revision, library_versions, hardware, run_id FROM run WHERE name = ?");
  find.bind(0, reuse_run_);
  if (!find.step()) {
    throw StoreError(
        fmt::format("store: {} holds no run '{}' whose answers could be reused", database_.path(), reuse_run_));
  }
  std::array<std::string, 4> theirs;
  for (int i = 0; i < 4; ++i) theirs[static_cast<std::size_t>(i)] = std::string(find.text(i));
  const bool itself = find.integer(4) == run_id();
  find.reset();
  if (itself) {
    throw StoreError(
        fmt::format("store: run '{}' can't reuse itself; the same command without --reuse continues it", reuse_run_));
  }
  const std::array<std::string_view, 4> columns = {"tool_version", "source_revision", "library_versions", "hardware"};
  for (std::size_t i = 0; i < columns.size(); ++i) {
    Statement& ours = database_.prepared(fmt::format("SELECT {} FROM run WHERE run_id = ?", columns[i]));
    ours.bind(0, run_id()).step();
    const std::string now(ours.text(0));
    ours.reset();
    if (now == theirs[i] || starts_with(now, theirs[i] + "; ")) continue;  // named before
    Statement& update = database_.prepared(fmt::format("UPDATE run SET {} = ? WHERE run_id = ?", columns[i]));
    update.bind(0, joined_provenance(theirs[i], now)).bind(1, run_id()).run();
  }
}

std::optional<std::int64_t> SqliteResultStore::reusable_result(const eval::SampleRecord& row) {
  Statement& find = database_.prepared(
      fmt::format("SELECT result_id FROM run JOIN variant USING (run_id) JOIN result USING (variant_id) "
                  "WHERE run.name = ? AND variant.name = ? AND result_key = ? AND status IN {}",
                  kFinalStatuses));
  find.bind(0, reuse_run_).bind(1, row.variant).bind(2, row.result_key);
  return find.first_integer();
}

void SqliteResultStore::copy_answer(std::int64_t from, std::int64_t to) {
  for (const char* statement :
       {"UPDATE result SET (status, seconds, computed_tokens, peak_rss_bytes) = (SELECT status, seconds, "
        "computed_tokens, peak_rss_bytes FROM result WHERE result_id = ?1) WHERE result_id = ?2",
        "INSERT OR REPLACE INTO completion (result_id, reply_text, reply_ids, reply_tokens, budget_hit, status_detail, "
        "smallest_length_tokens) SELECT ?2, reply_text, reply_ids, reply_tokens, budget_hit, status_detail, "
        "smallest_length_tokens FROM completion WHERE result_id = ?1",
        "INSERT INTO score (result_id, scorer_id, value, answer, explanation) SELECT ?2, scorer_id, value, answer, "
        "explanation FROM score WHERE result_id = ?1"}) {
    database_.prepared(statement).bind(0, from).bind(1, to).run();
  }
}

bool SqliteResultStore::take_over(const std::vector<eval::SampleRecord>& rows) {
  if (reuse_run_.empty()) return false;
  Transaction transaction(database_);
  std::vector<std::int64_t> found;
  found.reserve(rows.size());
  for (const eval::SampleRecord& row : rows) {
    const auto result = reusable_result(row);
    if (!result) return false;
    found.push_back(*result);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) copy_answer(found[i], put_row(rows[i]));
  transaction.commit();
  return true;
}

void SqliteResultStore::put_scores(std::int64_t result_id, const std::vector<eval::ScoreValue>& scores) {
  Statement& clear = database_.prepared("DELETE FROM score WHERE result_id = ?");
  clear.bind(0, result_id).run();
  Statement& insert =
      database_.prepared("INSERT INTO score (result_id, scorer_id, value, answer, explanation) VALUES (?, ?, ?, ?, ?)");
  for (const eval::ScoreValue& score : scores) {
    insert.bind(0, result_id).bind(1, scorer_id(score)).bind(2, score.value).bind(3, score.answer);
    insert.bind(4, score.explanation).run();
  }
}

void SqliteResultStore::put_guess(const eval::SampleRecord& row) {
  // Models with different tokenizers hold a different number of needles at one length; the report states the best
  // guesser.
  Statement& put = database_.prepared(
      "INSERT INTO guess (run_id, task_id, length_tokens, in_text_guess, blind_guess, own_length) VALUES (?, ?, ?, ?, "
      "?, ?) ON CONFLICT DO UPDATE SET "
      "in_text_guess = max(in_text_guess, excluded.in_text_guess), blind_guess = max(blind_guess, "
      "excluded.blind_guess), own_length = excluded.own_length");
  put.bind(0, run_id()).bind(1, task_id(row.sample)).bind(2, row.sample.length_tokens).bind(3, row.in_text_guess);
  put.bind(4, row.blind_guess).bind(5, static_cast<std::int64_t>(row.own_length)).run();
}

void SqliteResultStore::put_cells(const std::vector<eval::CellRecord>& cells) {
  run_id();
  Transaction transaction(database_);
  Statement& put = database_.prepared(
      "INSERT INTO unbuilt_cell (variant_id, task, task_variant, length_tokens, depth_bp, status, detail, "
      "smallest_length_tokens) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET status = excluded.status, detail = excluded.detail, "
      "smallest_length_tokens = excluded.smallest_length_tokens");
  for (const eval::CellRecord& cell : cells) {
    put.bind(0, variant_id(cell.variant)).bind(1, cell.task.name).bind(2, task::to_string(cell.task.variant));
    put.bind(3, cell.length_tokens)
        .bind(4, widened(cell.depth_bp))
        .bind(5, eval::to_string(cell.status))
        .bind(6, cell.detail);
    put.bind(7, cell.smallest_length_tokens).run();
  }
  transaction.commit();
}

void SqliteResultStore::end_run() {
  Statement& update =
      database_.prepared("UPDATE run SET finished_at = strftime('%Y-%m-%dT%H:%M:%SZ', 'now') WHERE run_id = ?");
  update.bind(0, run_id()).run();
}

}  // namespace

std::unique_ptr<eval::ResultSink> open_store(const std::string& path, const StoreOptions& options) {
  return std::make_unique<SqliteResultStore>(path, options);
}

}  // namespace fathom::store
