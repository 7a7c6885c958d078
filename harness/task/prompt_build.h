#pragma once
// From parts to a prompt: context with needles in it, layout, answer (tasks specification 0.2, 0.3, 1.1).

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/random.h"
#include "harness/task/haystack.h"
#include "harness/task/sample.h"
#include "harness/task/task.h"

namespace fathom::task {

/// Number of candidates that `rank` compares, the gold one included.
inline constexpr std::size_t kMaxCandidates = 16;

struct ByteSpan {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Context of a prompt and where its needles stand in it.
struct ContextText {
  std::string text;
  std::vector<ByteSpan> spans;  ///< in the order of the needles handed in
};

struct NeedleAt {
  std::string text;
  std::int64_t unit = 0;  ///< in front of this haystack unit
};

/// The first `n_units` units with the needles between them. Needles in front of one unit keep the order given.
/// \param joiner  between a needle and the unit or needle before it, and behind a needle that stands first.
ContextText join_context(const MeasuredHaystack& haystack, std::int64_t n_units, const std::vector<NeedleAt>& needles,
                         const std::string& joiner);

/// Everything of a task text but its context.
struct PromptFrame {
  std::string before;  ///< task text in front of the context
  std::string after;   ///< task text behind the context
  std::string answer_prefix;
  std::string system;  ///< empty: the pack's common one
};

/// Renders `layout` around its {context}. \throws ConfigError if the layout has no {context}.
PromptFrame render_layout(const std::string& layout, const text::SlotValues& values, std::string answer_prefix);

struct PromptPositions {
  std::vector<std::pair<std::int64_t, std::int64_t>>
      span_tokens;                   ///< first and last token (inclusive) of every span of the context
  std::size_t context_end_byte = 0;  ///< in the prompt text
};

/// Sets prompt text, ids and answer prefix.
PromptPositions fill_prompt(Sample& sample, const TaskContext& context, const PromptFrame& frame,
                            const ContextText& text);

/// What is right, and how it is written.
struct AnswerPlan {
  std::vector<std::string> references;
  std::vector<std::string> said;  ///< what the answer text says; empty = the references
  std::function<std::string(const std::vector<std::string>&)> join;
  std::optional<std::string> lead;  ///< between prompt and answer; nothing = by the rule of answer_lead()
  std::int64_t task_budget = 0;     ///< G_task
  TaskMetric metric = TaskMetric::kAll;
  bool first_line = false;          ///< only the reply's first line counts
  std::vector<std::string> labels;  ///< closed set the answer comes from; empty = none
};

/// A blank, unless the prompt already ends in white space or an opening quote, the reply opens a turn, or the language
/// writes none.
std::string answer_lead(const TaskContext& context, const std::string& prompt_text);

/// Sets references, answer text, metric and budgets: G = max(G_task, A + max(4, ceil(A/4))), or A for a closed
/// vocabulary, with A the tokens of the answer behind the prompt from byte `tail_byte` on. The prompt must be filled.
void fill_answer(Sample& sample, const TaskContext& context, const AnswerPlan& plan, std::size_t tail_byte);

/// Gold first, then values of the same form: those in the prompt (a draw of them if there are many), then fresh ones
/// until there are kMaxCandidates. \param fresh  a list that is not in the prompt, or nothing if there are no more.
std::vector<std::string> make_candidates(const Sample& sample, const AnswerPlan& plan,
                                         std::vector<std::vector<std::string>> in_prompt, RngStream& aux,
                                         const std::function<std::optional<std::vector<std::string>>()>& fresh);

}  // namespace fathom::task
