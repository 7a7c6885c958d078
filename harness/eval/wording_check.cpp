#include "harness/eval/wording_check.h"

#include <algorithm>

#include "harness/core/error.h"

namespace fathom::eval {
namespace {

std::optional<double> main_score(const SampleRecord& row) {
  for (const ScoreValue& score : row.scores) {
    if (score.scorer == task::to_string(row.sample.metric)) return score.value;
  }
  return std::nullopt;
}

}  // namespace

WordingScore wording_score(const std::vector<double>& values, std::int64_t n_failed) {
  WordingScore score;
  score.n = static_cast<std::int64_t>(values.size());
  score.n_failed = n_failed;
  if (values.empty()) return score;
  score.mean = mean(values).value();
  const bool whole = std::all_of(values.begin(), values.end(), [](double v) { return v == 0 || v == 1; });
  if (whole) {
    score.interval = wilson_interval(score.mean * static_cast<double>(score.n), score.n);
  } else {
    score.interval = bootstrap_mean_interval(values, RngStream(RngKey("fathom/1|wording"))).value();
  }
  return score;
}

std::string wording_verdict(const WordingRow& row, double threshold_percent) {
  if (!row.alone || row.alone->n == 0) return "no control";
  const auto may_pass = [&](const WordingScore& s) { return s.n > 0 && 100 * s.interval.high >= threshold_percent; };
  return may_pass(*row.alone) || may_pass(row.full) ? "measurable" : "beyond this model";
}

void WordingSink::begin_run(const RunRecord& run) {
  if (next_ != nullptr) next_->begin_run(run);
}

void WordingSink::put_variant(const VariantRecord& variant) {
  if (next_ != nullptr) next_->put_variant(variant);
}

void WordingSink::put_cells(const std::vector<CellRecord>& cells) {
  if (next_ != nullptr) next_->put_cells(cells);
}

void WordingSink::end_run() {
  if (next_ != nullptr) next_->end_run();
}

void WordingSink::put_batch(const std::vector<SampleRecord>& rows) {
  if (next_ != nullptr) next_->put_batch(rows);
  for (const SampleRecord& row : rows) {
    TaskTally& task = tally_of(row.sample.task);
    task.length_tokens = std::max(task.length_tokens, row.sample.length_tokens);
    task.in_text_guess = row.in_text_guess;
    if (!row.control.empty()) task.control = row.control;
    Tally& tally = row.control.empty() ? task.full : task.alone;
    const auto score = main_score(row);
    if (score) {
      tally.values.push_back(*score);
    } else {
      ++tally.n_failed;
    }
  }
}

WordingSink::TaskTally& WordingSink::tally_of(const std::string& task) {
  for (TaskTally& tally : tallies_) {
    if (tally.task == task) return tally;
  }
  tallies_.emplace_back();
  tallies_.back().task = task;
  return tallies_.back();
}

std::vector<WordingRow> WordingSink::rows() const {
  std::vector<WordingRow> out;
  for (const TaskTally& tally : tallies_) {
    WordingRow row;
    row.task = tally.task;
    row.length_tokens = tally.length_tokens;
    row.in_text_guess = tally.in_text_guess;
    row.full = wording_score(tally.full.values, tally.full.n_failed);
    row.control = tally.control;
    if (!tally.control.empty()) row.alone = wording_score(tally.alone.values, tally.alone.n_failed);
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace fathom::eval
