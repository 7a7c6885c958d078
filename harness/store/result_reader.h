#pragma once
// Read side of the results database, as the analysis and the reports see it.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/hash.h"
#include "harness/eval/records.h"
#include "harness/store/imported.h"
#include "harness/store/retention.h"

namespace fathom::store {

struct RunInfo {
  eval::RunRecord run;
  std::string finished_at;                    ///< empty: not finished
  std::string pruned_at;                      ///< when retention dropped its samples; empty: it has them
  std::vector<eval::VariantRecord> variants;  ///< in the order they were put
};

/// One sample without its texts: what statistics need. 1,000,000 of these must stay cheap.
struct OutcomeRow {
  std::int32_t variant = 0;  ///< index into RunInfo::variants
  std::int32_t task = 0;     ///< index into ResultReader::tasks(run)
  std::int64_t length_tokens = 0;
  std::optional<std::int32_t> depth_bp;  ///< nothing: depth not swept
  std::int64_t index = 0;                ///< sample number: the cluster
  eval::SampleStatus status = eval::SampleStatus::kOk;
  std::optional<double> value;  ///< the asked scorer's value
  std::int64_t result_id = 0;   ///< for `answer`, `prompt` and `misses` of the same reader
};

/// An outcome with what pairs it with another run's.
struct PairableRow {
  OutcomeRow outcome;
  Hash128 address;  ///< of the sample: equal addresses are the same question, byte for byte
};

/// What one result was asked and said.
struct AnswerText {
  std::string prompt_tail;  ///< last characters of the prompt, whole UTF-8 characters
  std::string expected;     ///< references, joined by ", "
  std::string reply;
};

struct PromptText {
  std::string text;
  TokenIds ids;
};

struct TaskInfo {
  std::string name;     ///< "niah_single_2"
  std::string variant;  ///< "balanced", "ruler"
  std::int32_t version = 0;
  std::string metric;  ///< name of its main scorer: "all" or "part"
  double blind_guess = 0;
  bool own_length = false;  ///< it has sizes of its own: its lengths are no points of the sweep's axis
};

struct MissRow {
  std::string variant, task;
  std::int64_t length_tokens = 0;
  std::optional<std::int32_t> depth_bp;
  std::int64_t index = 0;
  std::string expected;
  std::string reply;
  std::string prompt_tail;  ///< last characters of the prompt, whole UTF-8 characters
};

struct CostRow {
  std::string variant;
  std::int64_t length_tokens = 0;
  std::int64_t n_samples = 0;
  double seconds = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t computed_tokens = 0;
  std::int64_t peak_rss_bytes = 0;
};

/// How the replies of one variant, task and length ended: pooled over depths, without controls, status ok only.
struct ReplyRow {
  std::int32_t variant = 0;  ///< index into RunInfo::variants
  std::int32_t task = 0;     ///< index into ResultReader::tasks(run)
  std::int64_t length_tokens = 0;
  std::int64_t n_samples = 0;
  std::int64_t n_empty = 0;        ///< replies without text
  std::int64_t n_budget_hits = 0;  ///< cut off by the answer budget
  double mean_reply_tokens = 0;
  std::int64_t largest_slack_tokens = 0;  ///< L - (P + T + G)
  std::int64_t n_fit_drift = 0;           ///< slack above twice the mean unit of their haystack plus 8
};

struct GuessRow {
  std::int32_t task = 0;
  std::int64_t length_tokens = 0;
  double in_text_guess = 0;
};

/// One control (no_needle, needle_only, …) of one variant, task and length: pooled over depths.
struct ControlRow {
  std::int32_t variant = 0;  ///< index into RunInfo::variants
  std::int32_t task = 0;     ///< index into ResultReader::tasks(run)
  std::string control;
  std::int64_t length_tokens = 0;
  std::int64_t n_samples = 0;  ///< scored ones
  double mean = 0;             ///< of the task's main metric
};

/// Mean of one scorer over the samples of one variant, task and length: pooled over depths, without controls and
/// without NULL.
struct ScoreMeanRow {
  std::int32_t variant = 0;  ///< index into RunInfo::variants
  std::int32_t task = 0;     ///< index into ResultReader::tasks(run)
  std::string scorer;
  std::int64_t length_tokens = 0;
  std::int64_t n_samples = 0;
  double mean = 0;  ///< in the scorer's own unit
};

/// Bits by position of one sample of running text, as scorer bits_by_position writes them.
struct PositionBitsRow {
  std::int32_t variant = 0;  ///< index into RunInfo::variants
  std::int32_t task = 0;     ///< index into ResultReader::tasks(run)
  std::int64_t length_tokens = 0;
  std::string bins;
};

/// A reader sees the database as it was when it was opened, whatever is written meanwhile, so that all parts of a
/// report agree.
class ResultReader {
 public:
  virtual ~ResultReader() = default;
  virtual std::vector<std::string> run_names() const = 0;  ///< oldest first
  virtual RunInfo run(const std::string& name) const = 0;  ///< \throws StoreError, naming the nearest run
  /// What was kept of a run whose samples were dropped; empty for others.
  virtual KeptRun kept(const std::string& run) const = 0;
  /// Tasks with results, by name, variant and version.
  virtual std::vector<TaskInfo> tasks(const std::string& run) const = 0;
  /// Names of all scorers with a value or NULL in this run, sorted.
  virtual std::vector<std::string> scorers(const std::string& run) const = 0;
  /// Rows of one scorer, ordered by variant, task, length, depth, index, without controls. `scorer` "" = each task's
  /// main metric.
  virtual std::vector<OutcomeRow> outcomes(const std::string& run, const std::string& scorer = "") const = 0;
  /// The rows of `outcomes` in the same order, each with its address. \throws StoreError for an address that is no
  /// hash.
  virtual std::vector<PairableRow> pairable_rows(const std::string& run, const std::string& scorer = "") const = 0;
  /// \throws StoreError for a result that is not there.
  virtual AnswerText answer(std::int64_t result_id) const = 0;
  virtual PromptText prompt(std::int64_t result_id) const = 0;
  /// Versions of each scorer with scores in this run, by name; several where a run was continued with another build.
  virtual std::map<std::string, std::vector<std::int64_t>> scorer_versions(const std::string& run) const = 0;
  /// In the order of variants, then task, length, depth.
  virtual std::vector<eval::CellRecord> unbuilt_cells(const std::string& run) const = 0;
  /// Samples whose main metric is below 1: the first of each (variant, task, length, depth), in the order of
  /// `outcomes`. \param outcomes  the run's rows of its tasks' main metrics.
  virtual std::vector<MissRow> misses(const std::string& run, const std::vector<OutcomeRow>& outcomes,
                                      int max_per_cell) const = 0;
  /// All scorers, the main metrics included, by scorer, task, variant and length.
  virtual std::vector<ScoreMeanRow> score_means(const std::string& run) const = 0;
  /// By variant, task, length.
  virtual std::vector<ReplyRow> replies(const std::string& run) const = 0;
  virtual std::vector<ControlRow> controls(const std::string& run) const = 0;
  /// By variant, then length; controls included, as they cost too.
  virtual std::vector<CostRow> costs(const std::string& run) const = 0;
  virtual std::vector<GuessRow> guesses(const std::string& run) const = 0;
  /// By variant, task and length; nothing where no task scores running text.
  virtual std::vector<PositionBitsRow> position_bits(const std::string& run) const = 0;
  /// Results of other tools, whatever the run.
  virtual std::vector<ImportedSource> imports() const = 0;
};

/// Opens read-only. \throws StoreError for a missing file, a file that is no database, a newer schema (names both
/// versions).
std::unique_ptr<ResultReader> open_reader(const std::string& path);

}  // namespace fathom::store
