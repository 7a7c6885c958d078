#pragma once
// Fits a sample to its length: arithmetic on the haystack tokenised once, then one check (tasks specification 0.5).

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "harness/task/haystack.h"
#include "harness/task/sample_key.h"
#include "harness/task/task.h"

namespace fathom::task {

/// A sample of which everything is drawn but the number of haystack units. Nothing is redrawn while it is fitted.
class SampleDraft {
 public:
  virtual ~SampleDraft() = default;
  /// Smallest number of units the task allows at this length.
  virtual std::int64_t min_units() const = 0;
  /// Smallest length the task allows whatever its prompt takes.
  virtual std::int64_t min_length_tokens() const { return 0; }
  /// The one number of units there is, where nothing is fitted (controls without filler).
  virtual std::optional<std::int64_t> fixed_units() const { return std::nullopt; }
  /// The haystack, measured to at least `min_units` units and `min_tokens` tokens, or to its end.
  virtual HaystackCache::Entry haystack(std::int64_t min_units, std::int64_t min_tokens) const = 0;
  /// The whole sample over the first `n_units` units: prompt, ids, needles, references, answer, budget. No length
  /// check.
  virtual Sample build(std::int64_t n_units) const = 0;
  /// Adds what only the final sample needs (candidates).
  virtual void finish(Sample& sample) const = 0;
};

/// What a fitted task is made of.
struct TaskFrame {
  std::string name;
  std::int32_t version = 0;
  TaskVariant variant = TaskVariant::kBalanced;
  std::string canonical_options;
  std::string haystack_fingerprint;  ///< where the haystack comes from, for the address
  TaskContext context;
};

/// Common part of tasks whose haystack grows to the length: keys, fitting, L_min, refusals.
class FittedTask : public Task {
 public:
  explicit FittedTask(TaskFrame frame);

  Sample make_sample(const TaskCell& cell, std::int64_t index, std::uint64_t seed) const override;
  Sample refused_sample(const TaskCell& cell, std::int64_t index, std::uint64_t seed) const override;
  std::int64_t smallest_length_tokens(std::uint64_t seed) const override;
  std::optional<std::int64_t> largest_length_tokens(std::uint64_t seed) const override;
  std::string canonical_options() const override { return frame_.canonical_options; }

 protected:
  virtual std::unique_ptr<SampleDraft> draft(const SampleKeyParts& key) const = 0;
  /// Depths over which L_min takes the largest prompt, besides those of the run.
  virtual std::vector<std::int32_t> probe_depths() const { return {0, kDepthScale}; }

  const TaskFrame& frame() const { return frame_; }
  SampleKeyParts key_parts(const TaskCell& cell, std::int64_t index, std::uint64_t seed) const;
  /// Identity fields, key and address of a built sample.
  void stamp(Sample& sample, const SampleKeyParts& key) const;
  /// Haystack units of a typical sample at this length; the smallest allowed number if none can be built.
  std::int64_t typical_units(std::int64_t length_tokens) const;

 private:
  Sample fit(const SampleDraft& draft, const SampleKeyParts& key) const;
  /// Smallest length from `from` on that holds the sample at its smallest size.
  std::int64_t needed_tokens(const SampleKeyParts& key, std::int64_t from) const;
  std::int64_t count_typical_units(std::int64_t length_tokens) const;
  [[noreturn]] void refuse_short(const Sample& least, const SampleKeyParts& key) const;

  TaskFrame frame_;
  AddressParts address_;  // without the budgets
  mutable std::mutex mutex_;
  mutable std::map<std::uint64_t, std::int64_t> smallest_by_seed_;
  mutable std::map<std::int64_t, std::int64_t> typical_units_by_length_;
};

/// P + T + G.
std::int64_t total_tokens(const Sample& sample);

/// Hash of the word lists that keys are made of.
std::string word_lists_fingerprint(const text::PromptPack& pack);

}  // namespace fathom::task
