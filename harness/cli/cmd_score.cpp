#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "harness/cli/command_entries.h"
#include "harness/cli/console.h"
#include "harness/cli/predictions.h"
#include "harness/cli/prompt_lines.h"
#include "harness/cli/report_output.h"
#include "harness/config/parse.h"
#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/core/text_util.h"
#include "harness/eval/evaluator.h"
#include "harness/store/result_reader.h"
#include "harness/store/result_store.h"

namespace fathom::cli {
namespace {

constexpr std::size_t kRowsPerBatch = 64;

/// Calls `each(text, "FILE:LINE", number)` for every line that is not empty. \throws DataError
template <typename Each>
void for_each_line(const std::string& path, Each&& each) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw DataError(fmt::format("score: prompts '{}' cannot be read", path));
  std::string text;
  for (std::int64_t number = 1; std::getline(file, text); ++number) {
    if (!trim(text).empty()) each(text, fmt::format("{}:{}", path, number), number);
  }
  if (file.bad()) throw DataError(fmt::format("score: prompts '{}' cannot be read to the end", path));
}

struct PromptFile {
  PromptFileHead head;
  std::vector<PromptLineName> names;
  Hash128 hash;
};

PromptFile read_prompt_file(const std::string& path) {
  PromptFile out;
  std::map<std::string, std::int64_t> line_of;
  StreamingHash hash;
  for_each_line(path, [&](const std::string& text, const std::string& where, std::int64_t number) {
    if (out.names.empty()) out.head = read_prompt_head(text, where);
    out.names.push_back(read_prompt_name(text, where));
    hash.update(text);
    const auto [place, fresh] = line_of.emplace(out.names.back().key, number);
    if (!fresh) throw DataError(fmt::format("{}: the prompt of line {} a second time", where, place->second));
  });
  if (out.names.empty()) throw DataError(fmt::format("{}: no prompts; 'fathom generate' writes such a file", path));
  out.hash = hash.digest();
  return out;
}

struct ScoreTotals {
  std::int64_t scored = 0;
  std::int64_t missing = 0;
  std::int64_t failed = 0;
  std::int64_t total() const { return scored + missing + failed; }
};

/// Who answered: nothing is known of the engine but what the user says of it.
eval::VariantRecord external_variant(const PromptFileHead& head, const std::string& name, const std::string& engine) {
  eval::VariantRecord variant;
  variant.name = name;
  variant.model = head.model;
  variant.weights_hash = "predictions";
  variant.position = "external";
  variant.scaling = "external";
  variant.position_description = "whatever the engine does";
  variant.claimed_context = head.claimed_context;
  variant.trained_context = head.trained_context;
  variant.dtype = "external";
  variant.device = "external";
  variant.kernel = engine;
  return variant;
}

class PredictionScorer {
 public:
  PredictionScorer(std::string variant, lm::ModelIdentity identity, std::map<std::string, Prediction> predictions)
      : variant_(std::move(variant)), identity_(std::move(identity)), predictions_(std::move(predictions)) {}

  /// \param where  of the predictions file. \throws DataError for a prediction that repeats its prompt.
  eval::SampleRecord score(PromptLine line, const std::string& file) {
    eval::SampleRecord row;
    row.variant = variant_;
    row.in_text_guess = line.in_text_guess;
    row.blind_guess = line.blind_guess;
    row.own_length = line.own_length;
    row.sample = std::move(line.sample);
    row.control = task::to_string(row.sample.control);
    row.result_key = eval::result_key(row, identity_, {});
    const auto found = predictions_.find(row.sample.address);
    if (found == predictions_.end()) {
      row.status = eval::SampleStatus::kCancelled;
      row.status_detail = "no prediction";
      ++totals_.missing;
    } else if (!found->second.text) {
      row.status = eval::SampleStatus::kEngineError;
      row.status_detail = found->second.error.empty() ? "the engine gave no answer" : found->second.error;
      ++totals_.failed;
    } else {
      judge(row, *found->second.text, fmt::format("{}:{}", file, found->second.line));
      ++totals_.scored;
    }
    return row;
  }

  const ScoreTotals& totals() const { return totals_; }

 private:
  static void judge(eval::SampleRecord& row, const std::string& text, const std::string& where) {
    if (starts_with(text, row.sample.prompt_text)) {
      throw DataError(fmt::format("{}: the prediction repeats its prompt; give the generated text only", where));
    }
    const lm::Completion completion;
    scoring::ScoredReply reply;
    reply.sample = &row.sample;
    reply.completion = &completion;
    reply.reply_text = text;
    row.scores = eval::score_reply(reply, false);
    row.reply_text = text;
  }

  std::string variant_;
  lm::ModelIdentity identity_;
  std::map<std::string, Prediction> predictions_;
  ScoreTotals totals_;
};

/// A run that was stopped half-way stays so, whatever is scored into it. The database is there and up to date.
bool is_unfinished_run(const std::string& db, const std::string& run) {
  const auto reader = store::open_reader(db);
  const std::vector<std::string> names = reader->run_names();
  if (std::find(names.begin(), names.end(), run) == names.end()) return false;
  return reader->run(run).finished_at.empty();
}

int finish_score(const ScoreTotals& totals, const eval::RunRecord& run) {
  const double allowed = config::parse_config(run.canonical_config, run.name + ".ini", {}).sweep.max_failed;
  const std::int64_t failed = totals.missing + totals.failed;
  const double percent = 100.0 * static_cast<double>(failed) / static_cast<double>(totals.total());
  if (percent <= allowed) return static_cast<int>(ExitCode::kOk);
  fmt::print(
      stderr,
      "fathom: {} of {} prompts have no prediction and {} failed ({:.1f} %, allowed {} %): those lengths are not "
      "scored; give the rest and score again\n",
      totals.missing, totals.total(), totals.failed, percent, allowed);
  return static_cast<int>(ExitCode::kIncomplete);
}

int run_score(const Arguments& arguments) {
  const std::string prompts_path = *arguments.get("FILE");
  const std::string predictions_path = *arguments.get("PREDICTIONS");
  const PromptFile prompts = read_prompt_file(prompts_path);
  std::map<std::string, Prediction> predictions = read_predictions(predictions_path, prompts.names);

  eval::RunRecord run = prompts.head.run;
  run.name = arguments.get_or("run", run.name);
  run.library_versions = fmt::format("predictions of another engine ({})", predictions_path);
  run.hardware = "not known: scored from predictions";
  run.started_at = utc_now();
  const std::string engine = arguments.get_or("variant", std::filesystem::path(predictions_path).stem().string());
  const eval::VariantRecord variant =
      external_variant(prompts.head, engine, arguments.get_or("engine", "predictions of another engine"));
  const std::string db = arguments.get_or("db", run.name + ".db");
  PredictionScorer scorer(
      engine, {variant.model, variant.weights_hash, variant.position, variant.device, variant.dtype, variant.kernel, 0},
      std::move(predictions));
  {
    const auto sink = store::open_store(db);
    const bool unfinished = is_unfinished_run(db, run.name);
    sink->begin_run(run);
    sink->put_variant(variant);
    std::vector<eval::CellRecord> unbuilt = prompts.head.unbuilt;
    for (eval::CellRecord& cell : unbuilt) cell.variant = engine;
    sink->put_cells(unbuilt);
    std::vector<eval::SampleRecord> rows;
    for_each_line(prompts_path, [&](const std::string& text, const std::string& where, std::int64_t) {
      rows.push_back(scorer.score(read_prompt_line(text, where), predictions_path));
      if (rows.size() < kRowsPerBatch) return;
      sink->put_batch(rows);
      rows.clear();
    });
    if (!rows.empty()) sink->put_batch(rows);
    if (!unfinished) sink->end_run();
  }
  const ScoreTotals& totals = scorer.totals();
  if (!arguments.has("quiet")) print_report({db, {run.name}, "terminal", "en", TimingColumns::kShow});
  fmt::print("{} of {} prompts scored as variant '{}' of run '{}' in {}\n", totals.scored, totals.total(), engine,
             run.name, db);
  return finish_score(totals, run);
}

}  // namespace

CommandEntry entries::score_entry() {
  return {
      "score",
      "score the answers of any other engine",
      "Reads the file that 'generate' wrote and the answers to its prompts, one JSON object a line: {\"key\": …, "
      "\"pred\":\n"
      "generated text} or {\"index\": …, \"pred\": …}; null where the engine failed. The same scorers judge them, and "
      "the\n"
      "rows go into the same database: by default as a further variant of the config's run. A prompt without a "
      "prediction\n"
      "is counted, never scored 0; more of them than sweep.max_failed allows end with exit code 5. Scoring again "
      "replaces.",
      {"fathom score prompts.jsonl llama_cpp.jsonl --db smollm2.db",
       "fathom score prompts.jsonl vllm.jsonl --db smollm2.db --run smollm2-vllm --engine 'vLLM 0.6, bf16'"},
      {{"FILE", "prompts: what 'generate' wrote"}, {"PREDICTIONS", "answers, JSON lines"}},
      {{"db", "FILE", "results database (default RUN.db)", {}},
       {"run", "NAME", "run to put them into (default: the config's)", {}},
       {"variant", "NAME", "name in tables (default: PREDICTIONS without extension)", {}},
       {"engine", "TEXT", "what answered, for the record: program, version, type of weights", {}},
       {"quiet", "", "no report", {}}},
      run_score};
}

}  // namespace fathom::cli
