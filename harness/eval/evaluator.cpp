#include "harness/eval/evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/scoring/scorer.h"

namespace fathom::eval {
namespace {

/// Ids that follow the prompt when `answer` is appended to its text, after the longest common prefix
/// (specification 3.2).
lm::Continuation answer_continuation(const task::Sample& sample, const std::string& answer,
                                     const text::PromptAssembler& assembler) {
  const TokenIds whole = assembler.encode_whole(sample.prompt_text + answer);
  const auto shortest = std::min(whole.size(), sample.prompt_ids.size());
  const auto keep = static_cast<std::size_t>(
      std::mismatch(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(shortest), sample.prompt_ids.begin())
          .first -
      whole.begin());
  return {static_cast<std::int64_t>(keep), TokenIds(whole.begin() + static_cast<std::ptrdiff_t>(keep), whole.end())};
}

lm::Request make_request(const task::Sample& sample, const text::PromptAssembler& assembler, bool graded) {
  lm::Request request;
  request.prompt = sample.prompt_ids;
  request.max_new_tokens = sample.generation_budget + sample.think_budget;
  request.stop_ids = assembler.stop_ids();
  if (graded) {
    for (const std::string& candidate : sample.candidates) {
      request.continuations.push_back(answer_continuation(sample, candidate, assembler));
    }
  }
  return request;
}

/// What a cell cannot hold or a model cannot represent is a finding, not a failure.
bool is_failure(SampleStatus status) {
  switch (status) {
    case SampleStatus::kOk:
    case SampleStatus::kTooShort:
    case SampleStatus::kTooLong:
    case SampleStatus::kNoPosition:
      return false;
    case SampleStatus::kOutOfMemory:
    case SampleStatus::kEngineError:
    case SampleStatus::kCancelled:
      return true;
  }
  FATHOM_CHECK(false, "unknown status");
}

SampleStatus failure_status(const lm::Completion& completion) {
  return completion.out_of_memory ? SampleStatus::kOutOfMemory : SampleStatus::kEngineError;
}

/// State of one evaluate() call: what is needed to turn a batch into rows.
class BatchRunner {
 public:
  BatchRunner(const SweepPlan& plan, ModelProvider& models, const text::PromptAssembler& assembler,
              const EvalOptions& options)
      : plan_(plan), models_(models), assembler_(assembler), options_(options) {}

  /// Builds the batch's samples and result keys without asking the model.
  std::vector<SampleRecord> prepare(const PlannedBatch& batch) {
    std::vector<SampleRecord> rows;
    rows.reserve(batch.samples.size());
    const lm::ModelIdentity identity = models_.model_for(batch.samples.front().cell.length_tokens).identity();
    for (const PlannedSample& planned : batch.samples) {
      const PlannedTask& task = plan_.tasks[planned.task];
      SampleRecord row;
      row.variant = options_.variant;
      build_sample(row, task, planned);
      row.control = task::to_string(planned.cell.control);
      row.in_text_guess = task.task->in_text_guess(planned.cell.length_tokens);
      row.blind_guess = task.task->blind_guess();
      row.own_length = !task.task->sweeps_length();
      row.result_key = result_key(row, identity, {plan_.batch_tokens, options_.graded});
      rows.push_back(std::move(row));
    }
    return rows;
  }

  /// Asks the model for the whole batch and fills replies, scores and statuses. \param length_tokens  of the cell.
  void answer(std::vector<SampleRecord>& rows, std::int64_t length_tokens) {
    lm::LanguageModel& model = models_.model_for(length_tokens);
    const std::optional<std::int64_t> limit = model.max_positions();
    std::vector<lm::Request> requests;
    std::vector<std::size_t> asked;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const task::Sample& sample = rows[i].sample;
      if (rows[i].status != SampleStatus::kOk) continue;
      if (limit && sample.length_tokens > *limit) {
        rows[i].status = SampleStatus::kNoPosition;
        rows[i].status_detail = fmt::format("the model's position table ends at {} tokens", *limit);
        continue;
      }
      requests.push_back(make_request(sample, assembler_, options_.graded));
      asked.push_back(i);
    }
    if (requests.empty()) return;
    std::vector<lm::Completion> completions = model.complete(requests);
    FATHOM_CHECK(completions.size() == requests.size(), "one completion per request");
    for (std::size_t i = 0; i < asked.size(); ++i) judge(rows[asked[i]], std::move(completions[i]));
  }

 private:
  /// A sample that does not fit where others of its cell do is a row that says so, not the end of the run.
  void build_sample(SampleRecord& row, const PlannedTask& task, const PlannedSample& planned) const {
    try {
      row.sample = task.task->make_sample(planned.cell, planned.index, plan_.seed);
      return;
    } catch (const TooShortError& error) {
      row.status = SampleStatus::kTooShort;
      row.status_detail = error.what();
      row.smallest_length_tokens = error.smallest_length_tokens();
    } catch (const task::TooLongError& error) {
      row.status = SampleStatus::kTooLong;
      row.status_detail = error.what();
    }
    row.sample = task.task->refused_sample(planned.cell, planned.index, plan_.seed);
    row.sample.task = task.name.name;
    row.sample.variant = task.name.variant;
  }

  void judge(SampleRecord& row, lm::Completion completion) const {
    row.seconds = completion.seconds;
    row.computed_tokens = completion.computed_tokens;
    if (options_.peak_rss_bytes) row.peak_rss_bytes = options_.peak_rss_bytes();
    if (!completion.error.empty()) {
      row.status = failure_status(completion);
      row.status_detail = completion.error;
      return;
    }
    scoring::ScoredReply reply;
    reply.sample = &row.sample;
    reply.completion = &completion;
    reply.reply_text = assembler_.tokenizer().decode(completion.ids);
    reply.candidates = completion.continuations;
    row.scores = score_reply(reply, options_.graded);
    row.reply_text = reply.reply_text;
    row.budget_hit = completion.finish == lm::FinishReason::kBudget;
    row.reply_ids = std::move(completion.ids);
  }

  const SweepPlan& plan_;
  ModelProvider& models_;
  const text::PromptAssembler& assembler_;
  const EvalOptions& options_;
};

}  // namespace

std::vector<ScoreValue> score_reply(const scoring::ScoredReply& reply, bool graded) {
  std::vector<ScoreValue> values;
  for (const scoring::ScorerEntry& entry : scoring::scorers().entries()) {
    if (entry.needs_candidates && !graded) continue;
    const scoring::Score score = entry.make()->score(reply);
    values.push_back({std::string(entry.name), entry.version, score.value, score.answer, score.explanation});
  }
  return values;
}

std::string result_key(const SampleRecord& row, const lm::ModelIdentity& model, const AnswerSettings& settings) {
  return hash_hex(fmt::format("result/1|{}|{}|{}|{}|{}|{}|{}|batch={}|greedy|repeat=0{}", row.variant,
                              row.sample.address, model.weights_hash, model.position, model.device, model.dtype,
                              model.kernel, settings.batch_tokens, settings.graded ? "" : "|ungraded"));
}

EvalSummary evaluate(const SweepPlan& plan, ModelProvider& models, const text::PromptAssembler& assembler,
                     const std::set<std::string>& finished, ResultSink& sink, const EvalOptions& options) {
  const WorkList work = make_work_list(plan);
  for (const RefusedLength& refused : work.refused) {
    std::vector<CellRecord> cells = refused_cells(plan, refused);
    for (CellRecord& cell : cells) cell.variant = options.variant;
    sink.put_cells(cells);
  }
  BatchRunner runner(plan, models, assembler, options);
  EvalSummary summary;
  EvalProgress progress;
  progress.samples_total = work.n_samples;
  progress.remaining_tokens_weight = static_cast<double>(work.prompt_tokens);
  for (const PlannedBatch& batch : work.batches) {
    if (options.stop != nullptr && options.stop->stop_requested()) throw Interrupted("stopped between batches");
    const PlannedSample& first = batch.samples.front();
    const auto n_samples = static_cast<std::int64_t>(batch.samples.size());
    progress.cell = fmt::format("{} {}", plan.tasks[first.task].name.name, first.cell.length_tokens);
    if (options.progress) options.progress(progress);
    std::vector<SampleRecord> rows = runner.prepare(batch);
    const bool done_before = std::all_of(
        rows.begin(), rows.end(), [&finished](const SampleRecord& row) { return finished.count(row.result_key) != 0; });
    progress.remaining_tokens_weight -= static_cast<double>(n_samples * batch.sample_tokens);
    progress.samples_done += n_samples;
    if (done_before) {
      summary.samples_skipped += n_samples;
    } else if (sink.take_over(rows)) {
      summary.samples_reused += n_samples;
    } else {
      runner.answer(rows, first.cell.length_tokens);
      sink.put_batch(rows);
      for (const SampleRecord& row : rows) {
        progress.tokens_done += row.sample.prompt_tokens();
        progress.busy_seconds += row.seconds;
        summary.samples_failed += is_failure(row.status) ? 1 : 0;
      }
      summary.samples_done += n_samples;
    }
    progress.samples_failed = summary.samples_failed;
    if (options.progress) options.progress(progress);
  }
  return summary;
}

}  // namespace fathom::eval
