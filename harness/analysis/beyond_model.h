#pragma once
// Tasks that a model cannot do even without a haystack: no length says anything about its context.

#include <cstdint>
#include <optional>
#include <vector>

#include "harness/analysis/score_point.h"
#include "harness/store/result_reader.h"

namespace fathom::analysis {

/// Whether a model fails a task with the task's facts alone: there are rows of a control that leaves nothing but them
/// (needle_only; oracle for documents), and at every length of such rows the upper end of the 95 % Wilson interval lies
/// below the threshold of the absolute rule. Fractional scores count as that share of successes, which only widens the
/// interval. Specification of tasks 0.8 and 3.1. \param controls  of a whole run. \param variant, task  indices as in
/// the rows. \param threshold_percent  0..100
bool fails_facts_alone(const std::vector<store::ControlRow>& controls, std::int32_t variant, std::int32_t task,
                       double threshold_percent);

/// Whether a run asked this variant with the facts alone, in any task (none given) or in one.
bool asked_facts_alone(const std::vector<store::ControlRow>& controls, std::int32_t variant,
                       std::optional<std::int32_t> task);

/// Mean score, 0..1, of a variant and task under the control that leaves the facts alone, at the length whose facts
/// they are: longer prompts of a task may hold more of them.
std::optional<double> facts_alone_score(const std::vector<store::ControlRow>& controls, std::int32_t variant,
                                        std::int32_t task, std::int64_t length_tokens);

/// As fails_facts_alone, and no length of the task itself may pass either, by the upper ends of its intervals: needles
/// side by side can be harder than needles in prose. \param curve  of the task, depths pooled
bool beyond_model(const std::vector<store::ControlRow>& controls, std::int32_t variant, std::int32_t task,
                  const std::vector<ScorePoint>& curve, double threshold_percent);

/// Where the run asked for facts alone, a task that has no such control, its whole context being the facts (common
/// words, algorithms), and that can pass at no length asked, by the upper ends of its intervals: whether the task or
/// the length is at fault, the run cannot tell. Parameters as for beyond_model.
bool fails_without_control(const std::vector<store::ControlRow>& controls, std::int32_t variant, std::int32_t task,
                           const std::vector<ScorePoint>& curve, double threshold_percent);

}  // namespace fathom::analysis
