#include "harness/store/result_reader.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/store/imported_reader.h"
#include "harness/store/kept_rows.h"
#include "harness/store/pairable_rows.h"
#include "harness/store/reply_rows.h"
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

/// An outcome with what finds its texts again.
struct KeyedOutcome {
  OutcomeRow row;
  std::int64_t result_id = 0;
};

auto outcome_order(const OutcomeRow& row) {
  return std::make_tuple(row.variant, row.task, row.length_tokens, row.depth_bp, row.index);
}

class SqliteResultReader : public ResultReader {
 public:
  explicit SqliteResultReader(std::unique_ptr<Database> database) : database_(std::move(database)) {}

  std::vector<std::string> run_names() const override;
  RunInfo run(const std::string& name) const override;
  std::vector<TaskInfo> tasks(const std::string& run) const override;
  std::vector<std::string> scorers(const std::string& run) const override;
  std::vector<OutcomeRow> outcomes(const std::string& run, const std::string& scorer) const override;
  std::vector<PairableRow> pairable_rows(const std::string& run, const std::string& scorer) const override {
    const std::int64_t id = run_id(run);
    return read_pairable_rows(*database_, {id, task_indices(id), scorer});
  }
  KeptRun kept(const std::string& run) const override { return read_kept(*database_, run_id(run)); }
  std::vector<ReplyRow> replies(const std::string& run) const override {
    const std::int64_t id = run_id(run);
    return read_replies(*database_, id, task_indices(id));
  }
  AnswerText answer(std::int64_t result_id) const override { return read_answer(*database_, result_id); }
  PromptText prompt(std::int64_t result_id) const override { return read_prompt(*database_, result_id); }
  std::map<std::string, std::vector<std::int64_t>> scorer_versions(const std::string& run) const override {
    return read_scorer_versions(*database_, run_id(run));
  }
  std::vector<eval::CellRecord> unbuilt_cells(const std::string& run) const override;
  std::vector<MissRow> misses(const std::string& run, int max_per_cell) const override;
  std::vector<ScoreMeanRow> score_means(const std::string& run) const override;
  std::vector<ControlRow> controls(const std::string& run) const override;
  std::vector<CostRow> costs(const std::string& run) const override;
  std::vector<GuessRow> guesses(const std::string& run) const override;
  std::vector<PositionBitsRow> position_bits(const std::string& run) const override;
  std::vector<ImportedSource> imports() const override { return read_imports(*database_); }

 private:
  std::int64_t run_id(const std::string& name) const;
  std::map<std::int64_t, std::int32_t> task_indices(std::int64_t run_id) const;
  std::vector<std::pair<std::int64_t, TaskInfo>> task_rows(std::int64_t run_id) const;
  std::vector<eval::VariantRecord> variants(std::int64_t run_id) const;
  std::vector<KeyedOutcome> keyed_outcomes(const std::string& run, const std::string& scorer) const;

  std::unique_ptr<Database> database_;
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

std::vector<KeyedOutcome> SqliteResultReader::keyed_outcomes(const std::string& run, const std::string& scorer) const {
  const std::int64_t id = run_id(run);
  const std::map<std::int64_t, std::int32_t> task_of_id = task_indices(id);
  Statement select(*database_,
                   "SELECT v.ordinal, s.task_id, s.length_tokens, s.depth_bp, s.sample_index, r.status, r.result_id, "
                   "(SELECT value FROM score WHERE score.result_id = r.result_id AND scorer_id IN "
                   "(SELECT scorer_id FROM scorer WHERE name = iif(?2 = '', t.metric, ?2))) "
                   "FROM variant v CROSS JOIN result r INDEXED BY result_by_variant ON r.variant_id = v.variant_id "
                   "CROSS JOIN sample s ON s.sample_id = r.sample_id CROSS JOIN task t ON t.task_id = s.task_id "
                   "WHERE v.run_id = ?1 AND s.control = ''");
  select.bind(0, id).bind(1, scorer);
  std::vector<KeyedOutcome> out;
  while (select.step()) {
    KeyedOutcome outcome;
    outcome.row.variant = static_cast<std::int32_t>(select.integer(0));
    outcome.row.task = task_of_id.at(select.integer(1));
    outcome.row.length_tokens = select.integer(2);
    outcome.row.depth_bp = narrowed(select.optional_integer(3));
    outcome.row.index = select.integer(4);
    outcome.row.status = eval::parse_sample_status(select.text(5));
    outcome.result_id = select.integer(6);
    outcome.row.value = select.optional_real(7);
    out.push_back(outcome);
  }
  std::sort(out.begin(), out.end(), [](const KeyedOutcome& a, const KeyedOutcome& b) {
    return std::make_pair(outcome_order(a.row), a.result_id) < std::make_pair(outcome_order(b.row), b.result_id);
  });
  return out;
}

std::vector<OutcomeRow> SqliteResultReader::outcomes(const std::string& run, const std::string& scorer) const {
  const std::vector<KeyedOutcome> keyed = keyed_outcomes(run, scorer);
  std::vector<OutcomeRow> out;
  out.reserve(keyed.size());
  for (const KeyedOutcome& outcome : keyed) out.push_back(outcome.row);
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

std::vector<MissRow> SqliteResultReader::misses(const std::string& run, int max_per_cell) const {
  const RunInfo info = this->run(run);
  const std::vector<TaskInfo> task_infos = tasks(run);
  std::vector<MissRow> out;
  std::optional<OutcomeRow> cell;  // the cell being counted, index 0
  int n_in_cell = 0;
  for (const KeyedOutcome& outcome : keyed_outcomes(run, "")) {
    const OutcomeRow& row = outcome.row;
    if (row.status != eval::SampleStatus::kOk || !row.value || *row.value >= 1) continue;
    OutcomeRow place = row;
    place.index = 0;
    if (!cell || outcome_order(*cell) != outcome_order(place)) {
      cell = place;
      n_in_cell = 0;
    }
    if (++n_in_cell > max_per_cell) continue;
    const TaskInfo& task_info = task_infos[static_cast<std::size_t>(row.task)];
    MissRow miss;
    miss.variant = info.variants[static_cast<std::size_t>(row.variant)].name;
    miss.task = task_info.variant == "balanced" ? task_info.name : task_info.name + "@" + task_info.variant;
    miss.length_tokens = row.length_tokens;
    miss.depth_bp = row.depth_bp;
    miss.index = row.index;
    AnswerText text = read_answer(*database_, outcome.result_id);
    miss.prompt_tail = std::move(text.prompt_tail);
    miss.expected = std::move(text.expected);
    miss.reply = std::move(text.reply);
    out.push_back(std::move(miss));
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

std::vector<ControlRow> SqliteResultReader::controls(const std::string& run) const {
  const std::int64_t id = run_id(run);
  const std::map<std::int64_t, std::int32_t> task_of_id = task_indices(id);
  Statement select(
      *database_,
      "SELECT v.ordinal, s.task_id, s.control, s.length_tokens, count(value), avg(value) FROM variant v "
      "JOIN result r ON r.variant_id = v.variant_id JOIN sample s USING (sample_id) JOIN task t USING (task_id) "
      "JOIN score ON score.result_id = r.result_id JOIN scorer USING (scorer_id) WHERE v.run_id = ? "
      "AND s.control <> '' AND r.status = 'ok' AND scorer.name = t.metric AND value IS NOT NULL "
      "GROUP BY v.ordinal, t.name, t.variant, t.version, s.control, s.length_tokens "
      "ORDER BY v.ordinal, t.name, t.variant, t.version, s.control, s.length_tokens");
  select.bind(0, id);
  std::vector<ControlRow> out;
  while (select.step()) {
    const auto task = task_of_id.find(select.integer(1));
    if (task == task_of_id.end()) continue;  // a task of which controls ran and nothing else
    ControlRow row;
    row.variant = static_cast<std::int32_t>(select.integer(0));
    row.task = task->second;
    row.control = std::string(select.text(2));
    row.length_tokens = select.integer(3);
    row.n_samples = select.integer(4);
    row.mean = select.real(5);
    out.push_back(std::move(row));
  }
  return out;
}

std::vector<ScoreMeanRow> SqliteResultReader::score_means(const std::string& run) const {
  const std::int64_t id = run_id(run);
  const std::map<std::int64_t, std::int32_t> task_of_id = task_indices(id);
  Statement select(*database_,
                   "SELECT v.ordinal, s.task_id, scorer.name, s.length_tokens, count(value), avg(value) FROM variant v "
                   "CROSS JOIN result r INDEXED BY result_by_variant ON r.variant_id = v.variant_id "
                   "CROSS JOIN sample s ON s.sample_id = r.sample_id CROSS JOIN task t ON t.task_id = s.task_id "
                   "CROSS JOIN score ON score.result_id = r.result_id JOIN scorer USING (scorer_id) WHERE v.run_id = ? "
                   "AND s.control = '' AND r.status = 'ok' AND value IS NOT NULL "
                   "GROUP BY scorer.name, t.name, t.variant, t.version, t.metric, v.ordinal, s.length_tokens "
                   "ORDER BY scorer.name, t.name, t.variant, t.version, t.metric, v.ordinal, s.length_tokens");
  select.bind(0, id);
  std::vector<ScoreMeanRow> out;
  while (select.step()) {
    ScoreMeanRow row;
    row.variant = static_cast<std::int32_t>(select.integer(0));
    row.task = task_of_id.at(select.integer(1));
    row.scorer = std::string(select.text(2));
    row.length_tokens = select.integer(3);
    row.n_samples = select.integer(4);
    row.mean = select.real(5);
    out.push_back(std::move(row));
  }
  return out;
}

std::vector<CostRow> SqliteResultReader::costs(const std::string& run) const {
  Statement select(
      *database_,
      "SELECT v.name, s.length_tokens, count(*), sum(r.seconds), sum(s.prompt_tokens), sum(r.computed_tokens), "
      "max(r.peak_rss_bytes) FROM variant v JOIN result r ON r.variant_id = v.variant_id JOIN sample s USING "
      "(sample_id) "
      "WHERE v.run_id = ? GROUP BY v.ordinal, s.length_tokens ORDER BY v.ordinal, s.length_tokens");
  select.bind(0, run_id(run));
  std::vector<CostRow> out;
  while (select.step()) {
    CostRow row;
    row.variant = std::string(select.text(0));
    row.length_tokens = select.integer(1);
    row.n_samples = select.integer(2);
    row.seconds = select.real(3);
    row.prompt_tokens = select.integer(4);
    row.computed_tokens = select.integer(5);
    row.peak_rss_bytes = select.integer(6);
    out.push_back(std::move(row));
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
  auto database = std::make_unique<Database>(OpenRequest{path, OpenMode::kReadOnly});
  int result = first_read_result(*database);
  if (needs_shared_memory(result)) {
    // A write-ahead log needs a small shared file beside the database. Where it cannot be made, nobody can be writing
    // either, and the file is complete unless a log was left behind.
    const std::string log_path = path + "-wal";
    if (std::filesystem::exists(log_path, error) && std::filesystem::file_size(log_path, error) > 0) {
      throw StoreError(fmt::format(
          "store: {} has unfinished writes in {}, which can only be read where the folder may be written; copy "
          "both files to such a folder and report from there",
          path, log_path));
    }
    database = std::make_unique<Database>(OpenRequest{path, OpenMode::kImmutable});
    result = first_read_result(*database);
  }
  if (result != SQLITE_OK) database->fail(result, "cannot read");
  check_schema(*database);
  return std::make_unique<SqliteResultReader>(std::move(database));
}

}  // namespace fathom::store
