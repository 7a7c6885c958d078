#pragma once
// The interface of a task, and the table of all tasks.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/error.h"
#include "harness/core/options.h"
#include "harness/core/registry.h"
#include "harness/core/types.h"
#include "harness/task/sample.h"
#include "harness/text/chat_template.h"
#include "harness/text/prompt_pack.h"
#include "harness/text/text_corpus.h"
#include "harness/text/tokenizer.h"

namespace fathom::task {

/// A cell asks for more than the task can fill: the haystack text or the key space is used up. Status `too_long`
/// (specification 0.2).
class TooLongError : public DataError {
 public:
  TooLongError(const std::string& message, std::int64_t largest_length_tokens)
      : DataError(message), largest_length_tokens_(largest_length_tokens) {}
  std::int64_t largest_length_tokens() const { return largest_length_tokens_; }

 private:
  std::int64_t largest_length_tokens_;
};

/// One point of the sweep.
struct TaskCell {
  std::int64_t length_tokens = 0;        ///< prompt and generation budgets together stay within this
  std::optional<std::int32_t> depth_bp;  ///< requested needle depth in 1/100 %; nothing where depth is not swept
  Control control = Control::kNone;      ///< one of Task::controls(), or none
};

/// What neighbouring cells share (specification 0.4): which of depth and length the stream `facts` leaves out.
enum class PairMode { kNone, kDepth, kLength, kBoth };

/// Which haystack a run asks for.
struct HaystackSpec {
  enum class Kind { kTaskDefault, kProse, kNoise, kCorpus };
  Kind kind = Kind::kTaskDefault;
  std::shared_ptr<const text::TextCorpus> corpus;  ///< for kCorpus
  bool repeat = false;                             ///< repeat a text that is too short
};

/// Everything a task needs besides its own options. Lives longer than the task.
struct TaskContext {
  const text::PromptAssembler* assembler = nullptr;  ///< tokenizer, style, template
  std::shared_ptr<const text::PromptPack> pack;
  HaystackSpec haystack;
  PairMode pair = PairMode::kBoth;
  std::int64_t think_tokens = 0;        ///< T
  std::int64_t n_samples = 0;           ///< samples per cell that will be asked for: L_min covers their indices
  std::vector<std::int32_t> depths_bp;  ///< depths that will be asked for: L_min covers them too
};

class Task {
 public:
  virtual ~Task() = default;

  /// Builds sample number `index` of `cell`.
  ///
  /// Pure: the result depends on the arguments, the options and the context only. The same key gives the same sample on
  /// every platform, whatever was generated before it. Safe to call from several threads.
  ///
  /// \return a sample with P + T + G <= cell.length_tokens and exactly one correct answer.
  /// \throws TooShortError if the cell cannot hold it, TooLongError if keys or haystack run out. Never shortens the
  /// task to make it fit.
  virtual Sample make_sample(const TaskCell& cell, std::int64_t index, std::uint64_t seed) const = 0;

  /// What is known of a sample that make_sample() refused: identity, key and address, without prompt and answer.
  virtual Sample refused_sample(const TaskCell& cell, std::int64_t index, std::uint64_t seed) const;

  /// L_min = T + G + max of P over indices 0..n_samples-1 and the depths 0 and 10000 at the smallest unit count
  /// (specification 0.2).
  virtual std::int64_t smallest_length_tokens(std::uint64_t seed) const = 0;

  /// Largest length that every sample 0..n_samples-1 can fill, where keys or haystack run out; nothing = no limit.
  /// Longer cells are `too_long`.
  virtual std::optional<std::int64_t> largest_length_tokens(std::uint64_t /*seed*/) const { return std::nullopt; }

  /// False: the depths axis collapses to one cell per length (several gold items, or a depth drawn per sample).
  virtual bool sweeps_depth() const = 0;
  /// False: the task has fixed sizes of its own and the lengths axis collapses.
  virtual bool sweeps_length() const { return true; }
  /// The controls that make sense for this task.
  virtual std::vector<Control> controls() const { return {}; }
  /// The scorer whose value is the task's score.
  virtual TaskMetric metric() const { return TaskMetric::kAll; }
  /// Expected score (0..1) of naming values of the right form that stand in the prompt ("in-text guess"), at this
  /// length.
  virtual double in_text_guess(std::int64_t length_tokens) const = 0;
  /// Expected score (0..1) of values drawn blindly.
  virtual double blind_guess() const = 0;
  /// Canonical options, for the sample key and the database.
  virtual std::string canonical_options() const = 0;
};

struct TaskEntry {
  std::string_view name;     ///< stored with results; stable for ever
  std::int32_t version;      ///< bump when any key would give a different sample
  std::string_view group;    ///< "niah_single", "niah_multikey", "variable_tracking", "lost_in_the_middle", …
  std::string_view summary;  ///< one line
  std::string_view source;   ///< paper or benchmark it is modelled on
  bool has_ruler_variant;
  std::vector<OptionDescription> (*describe)();
  /// \throws ConfigError for unknown or bad options, or a pack, tokenizer or haystack the task cannot work with.
  std::unique_ptr<Task> (*make)(const TaskEntry& entry, TaskVariant variant, const OptionSource& options,
                                const TaskContext& context);
};

}  // namespace fathom::task
