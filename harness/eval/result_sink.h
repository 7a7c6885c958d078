#pragma once
// Where results go. The evaluator knows this interface only; harness/store implements it.

#include <set>
#include <string>
#include <vector>

#include "harness/eval/records.h"

namespace fathom::eval {

class ResultSink {
 public:
  virtual ~ResultSink() = default;
  /// Starts or continues the run of that name. \throws StoreError if a run of that name has another config fingerprint
  /// (says what differs and how to go on).
  virtual void begin_run(const RunRecord& run) = 0;
  virtual void put_variant(const VariantRecord& variant) = 0;
  /// Result keys already stored with status ok (or another final status) for this run.
  virtual std::set<std::string> finished_keys() = 0;
  /// All rows of one plan batch in one transaction: all or none.
  virtual void put_batch(const std::vector<SampleRecord>& rows) = 0;
  /// Takes the answers to these rows over from the run that this sink was told to reuse, all of a batch or none, in one
  /// transaction. The rows carry samples and result keys, no replies. \return false if an answer is not there.
  virtual bool take_over(const std::vector<SampleRecord>& rows) = 0;
  virtual void put_cells(const std::vector<CellRecord>& cells) = 0;
  virtual void end_run() = 0;
};

}  // namespace fathom::eval
