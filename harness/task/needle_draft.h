#pragma once
// A sample made of needles in a haystack: what niah, variable tracking and their relatives have in common.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/task/fitting.h"
#include "harness/task/placement.h"
#include "harness/task/prompt_build.h"

namespace fathom::task {

/// How RULER or balanced placement puts the needles.
enum class PlacementRule { kBalanced, kRulerProse, kRulerUnits };

/// Everything of one sample but the number of haystack units.
struct NeedlePlan {
  std::vector<std::string> needles;  ///< by rank, group by group
  std::vector<NeedleGroup> groups;   ///< their sizes add up to needles.size()
  bool chains = false;               ///< needles of a group keep their order in the text
  PlacementRule rule = PlacementRule::kBalanced;
  std::int64_t min_units = 0;
  std::string joiner;  ///< between needles and their neighbours
  PromptFrame frame;
  AnswerPlan answer;
  std::function<HaystackCache::Entry(std::int64_t min_units, std::int64_t min_tokens)> haystack;
  std::function<void(Sample& sample)> finish;  ///< sets the candidates
  std::optional<PromptFrame> closed_frame;     ///< for closed_book; unset: `frame` around the pack's no_context
  /// Instead of `rule`: a place for every needle, by rank.
  std::function<std::vector<Placement>(const MeasuredHaystack& haystack, std::int64_t n_units)> place;
  /// Instead of join_context(): how units and needles become one text. `ranks` are those of the needles handed in.
  std::function<ContextText(const MeasuredHaystack& haystack, std::int64_t n_units,
                            const std::vector<NeedleAt>& needles, const std::vector<std::size_t>& ranks)>
      compose;
};

/// Controls no_needle, needle_only, oracle and closed_book are made here; wrong_key is the task's business.
class NeedleDraft : public SampleDraft {
 public:
  NeedleDraft(const TaskContext& context, SampleKeyParts key, NeedlePlan plan);

  std::int64_t min_units() const override { return plan_.min_units; }
  std::optional<std::int64_t> fixed_units() const override;
  HaystackCache::Entry haystack(std::int64_t min_units, std::int64_t min_tokens) const override {
    return plan_.haystack(min_units, min_tokens);
  }
  Sample build(std::int64_t n_units) const override;
  void finish(Sample& sample) const override { plan_.finish(sample); }

 private:
  /// The needles of the prompt and their places; `ranks` says which ones they are.
  struct Placed {
    std::vector<std::size_t> ranks;
    std::vector<Placement> places;
  };
  Placed place_for_control(const MeasuredHaystack& measured, std::int64_t n_units) const;
  Sample build_closed_book() const;
  std::vector<Placement> place(const MeasuredHaystack& measured, std::int64_t n_units) const;
  std::vector<Placement> place_in_ruler_order(std::vector<Placement> ascending) const;
  std::vector<Placement> place_chains(const std::vector<Placement>& ascending) const;
  std::vector<bool> gold_by_rank() const;

  const TaskContext& context_;
  SampleKeyParts key_;
  NeedlePlan plan_;
};

}  // namespace fathom::task
