#include "harness/store/result_reader.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <filesystem>
#include <map>

#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/store/answer_rows.h"
#include "harness/store/imported_reader.h"
#include "harness/store/kept_rows.h"
#include "harness/store/outcome_rows.h"
#include "harness/store/pooled_rows.h"
#include "harness/store/sample_places.h"
#include "harness/store/schema.h"
#include "harness/store/sqlite.h"

namespace fathom::store {
namespace {

std::optional<std::int32_t> narrowed(const std::optional<std::int64_t>& value) {
  if (!value) return std::nullopt;
  return static_cast<std::int32_t>(*value);
}

task::TaskVariant stored_task_variant(std::string_view text) {
  for (const task::TaskVariant variant : {task::TaskVariant::kBalanced, task::TaskVariant::kRuler}) {
    if (task::to_string(variant) == text) return variant;
  }
  throw StoreError(fmt::format("store: unknown task variant '{}'; known: balanced, ruler", text));
}

/// What becomes of the write-ahead log when a reader closes: one that was not there before is its own.
enum class LogAtEnd { kKeep, kRemove };

class SqliteResultReader : public ResultReader {
 public:
  SqliteResultReader(std::unique_ptr<Database> database, LogAtEnd log)
      : database_(std::move(database)), places_(std::make_unique<SamplePlaces>(*database_)), log_(log) {}
  ~SqliteResultReader() override {
    const std::string path = database_->path();
    places_.reset();
    database_.reset();
    if (log_ == LogAtEnd::kRemove) remove_idle_log(path);
  }

  std::vector<std::string> run_names() const override;
  RunInfo run(const std::string& name) const override;
  std::vector<TaskInfo> tasks(const std::string& run) const override;
  std::vector<std::string> scorers(const std::string& run) const override;
  std::vector<OutcomeRow> outcomes(const std::string& run, const std::string& scorer) const override {
    return read_outcomes(scope(run), scorer);
  }
  std::vector<PairableRow> pairable_rows(const std::string& run, const std::string& scorer) const override {
    return read_pairable_rows(scope(run), scorer);
  }
  KeptRun kept(const std::string& run) const override { return read_kept(*database_, run_id(run)); }
  std::vector<ReplyRow> replies(const std::string& run) const override { return read_replies(scope(run)); }
  AnswerText answer(std::int64_t result_id) const override { return read_answer(*database_, result_id); }
  PromptText prompt(std::int64_t result_id) const override { return read_prompt(*database_, result_id); }
  std::map<std::string, std::vector<std::int64_t>> scorer_versions(const std::string& run) const override {
    return read_scorer_versions(*database_, run_id(run));
  }
  std::vector<eval::CellRecord> unbuilt_cells(const std::string& run) const override;
  std::vector<MissRow> misses(const std::string& run, const std::vector<OutcomeRow>& outcomes,
                              int max_per_cell) const override {
    return read_misses(*database_, outcomes, {variants(run_id(run)), tasks(run), max_per_cell});
  }
  std::vector<ScoreMeanRow> score_means(const std::string& run) const override { return read_score_means(scope(run)); }
  std::vector<ControlRow> controls(const std::string& run) const override { return read_controls(scope(run)); }
  std::vector<CostRow> costs(const std::string& run) const override {
    return read_costs(scope(run), variants(run_id(run)));
  }
  std::vector<GuessRow> guesses(const std::string& run) const override;
  std::vector<PositionBitsRow> position_bits(const std::string& run) const override;
  std::vector<ImportedSource> imports() const override { return read_imports(*database_); }

 private:
  std::int64_t run_id(const std::string& name) const;
  RunScope scope(const std::string& run) const;
  std::map<std::int64_t, std::int32_t> task_indices(std::int64_t run_id) const;
  std::vector<std::pair<std::int64_t, TaskInfo>> task_rows(std::int64_t run_id) const;
  std::vector<eval::VariantRecord> variants(std::int64_t run_id) const;

  std::unique_ptr<Database> database_;
  std::unique_ptr<SamplePlaces> places_;  // the reader's view of the database never changes, so they never do
  LogAtEnd log_;
};

std::vector<std::string> SqliteResultReader::run_names() const {
  Statement select(*database_, "SELECT name FROM run ORDER BY run_id");
  std::vector<std::string> names;
  while (select.step()) names.emplace_back(select.text(0));
  return names;
}

std::int64_t SqliteResultReader::run_id(const std::string& name) const {
  Statement select(*database_, "SELECT run_id FROM run WHERE name = ?");
  select.bind(0, name);
  if (const auto found = select.first_integer()) return *found;
  const std::vector<std::string> names = run_names();
  std::string message = fmt::format("store: {} holds no run '{}'; ", database_->path(), name);
  if (const auto near = nearest_name(name, names)) message += "did you mean '" + *near + "'? ";
  throw StoreError(message + (names.empty() ? "it holds no runs" : "it holds: " + join(names, ", ")));
}

RunScope SqliteResultReader::scope(const std::string& run) const {
  const std::int64_t id = run_id(run);
  return {*database_, *places_, id, task_indices(id), read_run_variants(*database_, id)};
}

RunInfo SqliteResultReader::run(const std::string& name) const {
  const std::int64_t id = run_id(name);
  Statement select(
      *database_,
      "SELECT name, canonical_config, config_fingerprint, tool_version, source_revision, library_versions, "
      "hardware, seed, started_at, finished_at, pruned_at FROM run WHERE run_id = ?");
  select.bind(0, id);
  FATHOM_CHECK(select.step(), "the run was found a moment ago, in the same snapshot");
  RunInfo info;
  info.run.name = std::string(select.text(0));
  info.run.canonical_config = std::string(select.text(1));
  info.run.config_fingerprint = std::string(select.text(2));
  info.run.tool_version = std::string(select.text(3));
  info.run.source_revision = std::string(select.text(4));
  info.run.library_versions = std::string(select.text(5));
  info.run.hardware = std::string(select.text(6));
  info.run.seed = select.integer(7);
  info.run.started_at = std::string(select.text(8));
  info.finished_at = std::string(select.text(9));
  info.pruned_at = std::string(select.text(10));
  info.variants = variants(id);
  return info;
}

std::vector<eval::VariantRecord> SqliteResultReader::variants(std::int64_t run_id) const {
  Statement select(
      *database_,
      "SELECT name, model, weights_hash, position, rope_base, scaling, factor, position_description, "
      "resolved_json, parameters, claimed_context, trained_context, train_seed, train_steps, train_seconds, "
      "train_accuracy, mastered, dtype, device, kernel FROM variant WHERE run_id = ? ORDER BY ordinal");
  select.bind(0, run_id);
  std::vector<eval::VariantRecord> out;
  while (select.step()) {
    eval::VariantRecord v;
    v.name = std::string(select.text(0));
    v.model = std::string(select.text(1));
    v.weights_hash = std::string(select.text(2));
    v.position = std::string(select.text(3));
    v.rope_base = select.optional_real(4);
    v.scaling = std::string(select.text(5));
    v.factor = select.optional_real(6);
    v.position_description = std::string(select.text(7));
    v.resolved_json = std::string(select.text(8));
    v.parameters = select.integer(9);
    v.claimed_context = select.integer(10);
    v.trained_context = select.optional_integer(11);
    v.train_seed = select.optional_integer(12);
    v.train_steps = select.optional_integer(13);
    v.train_seconds = select.optional_real(14);
    v.train_accuracy = select.optional_real(15);
    if (const auto mastered = select.optional_integer(16)) v.mastered = *mastered != 0;
    v.dtype = std::string(select.text(17));
    v.device = std::string(select.text(18));
    v.kernel = std::string(select.text(19));
    out.push_back(std::move(v));
  }
  return out;
}

std::vector<std::pair<std::int64_t, TaskInfo>> SqliteResultReader::task_rows(std::int64_t run_id) const {
  // Every result that is no control has left a guess, and there are far fewer of those than of results.
  Statement select(*database_,
                   "SELECT task_id, name, variant, version, metric, max(blind_guess), max(own_length) FROM guess JOIN "
                   "task USING (task_id) "
                   "WHERE run_id = ? GROUP BY task_id ORDER BY name, variant, version, metric");
  select.bind(0, run_id);
  std::vector<std::pair<std::int64_t, TaskInfo>> out;
  while (select.step()) {
    TaskInfo info;
    info.name = std::string(select.text(1));
    info.variant = std::string(select.text(2));
    info.version = static_cast<std::int32_t>(select.integer(3));
    info.metric = std::string(select.text(4));
    info.blind_guess = select.real(5);
    info.own_length = select.integer(6) != 0;
    out.emplace_back(select.integer(0), std::move(info));
  }
  return out;
}

std::map<std::int64_t, std::int32_t> SqliteResultReader::task_indices(std::int64_t run_id) const {
  std::map<std::int64_t, std::int32_t> indices;
  for (const auto& [id, info] : task_rows(run_id)) indices.emplace(id, static_cast<std::int32_t>(indices.size()));
  return indices;
}

std::vector<TaskInfo> SqliteResultReader::tasks(const std::string& run) const {
  std::vector<TaskInfo> out;
  for (auto& [id, info] : task_rows(run_id(run))) out.push_back(std::move(info));
  return out;
}

std::vector<std::string> SqliteResultReader::scorers(const std::string& run) const {
  // Asks for one score of each scorer instead of counting all.
  Statement select(
      *database_,
      "SELECT DISTINCT name FROM scorer WHERE EXISTS (SELECT 1 FROM variant JOIN result USING (variant_id) "
      "JOIN score USING (result_id) WHERE run_id = ? AND score.scorer_id = scorer.scorer_id) ORDER BY name");
  select.bind(0, run_id(run));
  std::vector<std::string> out;
  while (select.step()) out.emplace_back(select.text(0));
  return out;
}

std::vector<eval::CellRecord> SqliteResultReader::unbuilt_cells(const std::string& run) const {
  Statement select(*database_,
                   "SELECT v.name, task, task_variant, length_tokens, depth_bp, status, detail, smallest_length_tokens "
                   "FROM variant v JOIN unbuilt_cell USING (variant_id) WHERE run_id = ? "
                   "ORDER BY ordinal, task, task_variant, length_tokens, depth_bp");
  select.bind(0, run_id(run));
  std::vector<eval::CellRecord> out;
  while (select.step()) {
    eval::CellRecord cell;
    cell.variant = std::string(select.text(0));
    cell.task = {std::string(select.text(1)), stored_task_variant(select.text(2))};
    cell.length_tokens = select.integer(3);
    cell.depth_bp = narrowed(select.optional_integer(4));
    cell.status = eval::parse_sample_status(select.text(5));
    cell.detail = std::string(select.text(6));
    cell.smallest_length_tokens = select.optional_integer(7);
    out.push_back(std::move(cell));
  }
  return out;
}

std::vector<PositionBitsRow> SqliteResultReader::position_bits(const std::string& run) const {
  const std::int64_t id = run_id(run);
  const auto tasks = task_rows(id);
  std::vector<PositionBitsRow> out;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    if (tasks[t].second.metric != "top1") continue;
    Statement select(*database_,
                     "SELECT v.ordinal, s.length_tokens, score.answer FROM variant v JOIN result r ON r.variant_id = "
                     "v.variant_id JOIN sample s USING (sample_id) JOIN score ON score.result_id = r.result_id JOIN "
                     "scorer USING (scorer_id) WHERE v.run_id = ? AND s.task_id = ? AND s.control = '' AND r.status = "
                     "'ok' AND scorer.name = 'bits_by_position' AND score.answer <> '' ORDER BY v.ordinal, "
                     "s.length_tokens, s.sample_index");
    select.bind(0, id).bind(1, tasks[t].first);
    while (select.step()) {
      out.push_back({static_cast<std::int32_t>(select.integer(0)), static_cast<std::int32_t>(t), select.integer(1),
                     std::string(select.text(2))});
    }
  }
  return out;
}

std::vector<GuessRow> SqliteResultReader::guesses(const std::string& run) const {
  const std::int64_t id = run_id(run);
  const std::map<std::int64_t, std::int32_t> task_of_id = task_indices(id);
  Statement select(*database_,
                   "SELECT task_id, length_tokens, in_text_guess FROM guess JOIN task USING (task_id) WHERE run_id = ? "
                   "ORDER BY name, variant, version, metric, length_tokens");
  select.bind(0, id);
  std::vector<GuessRow> out;
  while (select.step()) out.push_back({task_of_id.at(select.integer(0)), select.integer(1), select.real(2)});
  return out;
}

/// SQLite's answer to the first read: opening a file reads nothing yet.
int first_read_result(const Database& database) {
  return sqlite3_exec(database.handle(), "BEGIN; SELECT count(*) FROM sqlite_schema", nullptr, nullptr, nullptr);
}

bool needs_shared_memory(int result_code) {
  const int primary = result_code & 0xff;
  return primary == SQLITE_CANTOPEN || primary == SQLITE_READONLY || primary == SQLITE_PERM;
}

}  // namespace

std::unique_ptr<ResultReader> open_reader(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    throw StoreError(fmt::format(
        "store: there is no database {}; check the path, or fill it with 'fathom run CONFIG --db {}'", path, path));
  }
  if (std::filesystem::is_directory(path, error)) {
    throw StoreError(fmt::format("store: {} is a folder; name the database file in it", path));
  }
  const std::string log_path = path + "-wal";
  LogAtEnd log = std::filesystem::exists(log_path, error) ? LogAtEnd::kKeep : LogAtEnd::kRemove;
  auto database = std::make_unique<Database>(OpenRequest{path, OpenMode::kReadOnly});
  int result = first_read_result(*database);
  if (needs_shared_memory(result)) {
    // A write-ahead log needs a small shared file beside the database. Where it cannot be made, nobody can be writing
    // either, and the file is complete unless a log was left behind.
    if (std::filesystem::exists(log_path, error) && std::filesystem::file_size(log_path, error) > 0) {
      throw StoreError(fmt::format(
          "store: {} has unfinished writes in {}, which can only be read where the folder may be written; copy "
          "both files to such a folder and report from there",
          path, log_path));
    }
    database = std::make_unique<Database>(OpenRequest{path, OpenMode::kImmutable});
    log = LogAtEnd::kKeep;
    result = first_read_result(*database);
  }
  if (result != SQLITE_OK) database->fail(result, "cannot read");
  check_schema(*database);
  return std::make_unique<SqliteResultReader>(std::move(database), log);
}

}  // namespace fathom::store
