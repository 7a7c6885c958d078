#pragma once
// Whether a model understands the wording of the tasks at all: each task with its facts alone, and in full, at a short
// length.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/stats.h"
#include "harness/eval/result_sink.h"

namespace fathom::eval {

/// Mean of a task's main score with its 95 % interval: Wilson for 0/1 scores, else bootstrap over samples.
struct WordingScore {
  std::int64_t n = 0;
  std::int64_t n_failed = 0;
  double mean = 0;  ///< 0..1
  Interval interval = {0, 1};
};
WordingScore wording_score(const std::vector<double>& values, std::int64_t n_failed);

struct WordingRow {
  std::string task;
  std::int64_t length_tokens = 0;
  std::string control;                ///< "needle_only" or "oracle"; empty: the task has neither
  std::optional<WordingScore> alone;  ///< under that control
  WordingScore full;
  double in_text_guess = 0;
};

/// "beyond this model": even with the facts alone the whole interval lies below the threshold, and in full too, so that
/// no length can pass (needles side by side can be harder than needles in prose); "measurable"; "no control" where the
/// question cannot be asked.
std::string wording_verdict(const WordingRow& row, double threshold_percent);

/// Collects main scores by task; passes everything on to another sink, if there is one.
class WordingSink : public ResultSink {
 public:
  /// \param next  may be null; not owned.
  explicit WordingSink(ResultSink* next) : next_(next) {}
  void begin_run(const RunRecord& run) override;
  void put_variant(const VariantRecord& variant) override;
  std::set<std::string> finished_keys() override { return {}; }
  void put_batch(const std::vector<SampleRecord>& rows) override;
  bool take_over(const std::vector<SampleRecord>&) override { return false; }
  void put_cells(const std::vector<CellRecord>& cells) override;
  void end_run() override;

  /// In the order the tasks came.
  std::vector<WordingRow> rows() const;

 private:
  struct Tally {
    std::vector<double> values;
    std::int64_t n_failed = 0;
  };
  struct TaskTally {
    std::string task;
    std::int64_t length_tokens = 0;  ///< the longest: tasks of fixed sizes have several
    double in_text_guess = 0;
    Tally full;
    std::string control;
    Tally alone;
  };
  TaskTally& tally_of(const std::string& task);

  ResultSink* next_;
  std::vector<TaskTally> tallies_;
};

}  // namespace fathom::eval
