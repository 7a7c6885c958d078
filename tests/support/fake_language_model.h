#pragma once
// A language model for tests of the evaluator: answers by a function, remembers what it was asked.

#include <functional>
#include <utility>
#include <vector>

#include "harness/eval/evaluator.h"
#include "harness/lm/language_model.h"

namespace fathom::test {

class FakeLanguageModel : public lm::LanguageModel {
 public:
  using Answer = std::function<lm::Completion(const lm::Request&)>;
  explicit FakeLanguageModel(Answer answer) : answer_(std::move(answer)) {}

  std::vector<lm::Completion> complete(const std::vector<lm::Request>& batch) override {
    batch_sizes.push_back(batch.size());
    std::vector<lm::Completion> out;
    for (const lm::Request& request : batch) out.push_back(answer_(request));
    return out;
  }
  std::optional<std::int64_t> max_positions() const override { return position_limit; }
  std::int64_t vocab_size() const override { return 1000; }
  lm::ModelIdentity identity() const override { return {"fake", "weights", position, "cpu", "float32", "fake/1", 0}; }

  std::optional<std::int64_t> position_limit;
  std::string position = "nope";
  std::vector<std::size_t> batch_sizes;

 private:
  Answer answer_;
};

class FakeModelProvider : public eval::ModelProvider {
 public:
  explicit FakeModelProvider(lm::LanguageModel& model) : model_(model) {}
  lm::LanguageModel& model_for(std::int64_t) override { return model_; }

 private:
  lm::LanguageModel& model_;
};

/// Keeps everything it is given.
class MemorySink : public eval::ResultSink {
 public:
  void begin_run(const eval::RunRecord&) override {}
  void put_variant(const eval::VariantRecord&) override {}
  std::set<std::string> finished_keys() override {
    std::set<std::string> keys;
    for (const eval::SampleRecord& row : rows) keys.insert(row.result_key);
    return keys;
  }
  void put_batch(const std::vector<eval::SampleRecord>& batch) override {
    rows.insert(rows.end(), batch.begin(), batch.end());
    if (after_batch) after_batch();
  }
  bool take_over(const std::vector<eval::SampleRecord>&) override { return false; }
  void put_cells(const std::vector<eval::CellRecord>& more) override {
    cells.insert(cells.end(), more.begin(), more.end());
  }
  void end_run() override {}

  std::vector<eval::SampleRecord> rows;
  std::vector<eval::CellRecord> cells;
  std::function<void()> after_batch;
};

}  // namespace fathom::test
