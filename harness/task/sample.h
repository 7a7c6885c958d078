#pragma once
// One question with everything that is known about it. Built by a Task, answered by a LanguageModel, judged by Scorers.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/types.h"

namespace fathom::task {

/// Where one needle stands.
struct NeedlePlace {
  bool gold = true;                                ///< the answer needs it
  std::optional<std::int32_t> requested_depth_bp;  ///< 0..10000
  std::int32_t actual_depth_bp = 0;                ///< haystack tokens before it / haystack tokens, in 1/100 %
  std::int64_t first_token = 0;                    ///< index in prompt ids
  std::int64_t last_token = 0;                     ///< index in prompt ids, inclusive
};

/// Task variants after RULER (specification 1.0); tasks with one variant only use kBalanced.
enum class TaskVariant { kBalanced, kRuler };
std::string_view to_string(TaskVariant variant);  // "balanced", "ruler"

/// A task as a config names it: "niah_single_2", "niah_single_2@ruler", a group, or "ruler" (all of RULER's).
struct TaskName {
  std::string name;
  TaskVariant variant = TaskVariant::kBalanced;
  /// "niah_single_2@balanced"
  std::string full() const { return name + "@" + std::string(to_string(variant)); }
};

/// How a reply is compared with the references (specification 0.6).
enum class TaskMetric { kAll, kPart, kSubspan, kEm, kLabel, kTop1 };
/// Name of the scorer that is the task's main one: "all", "part", "subspan", "em", "label",
/// "top1".
std::string_view to_string(TaskMetric metric);

/// What a control changes (specification 3.1).
enum class Control {
  kNone,
  kNoNeedle,    ///< gold needles removed, context refitted, same question
  kNeedleOnly,  ///< needles alone, no filler
  kWrongKey,    ///< the question names a fresh key, the gold needle stays; a value present in the reply is a false hit
  kClosedBook,  ///< no context
  kOracle,      ///< gold documents only
};
/// "" for none, else "no_needle", "needle_only", "wrong_key", "closed_book", "oracle".
std::string_view to_string(Control control);

struct Sample {
  std::string task;  ///< "niah_single_2"
  TaskVariant variant = TaskVariant::kBalanced;
  std::int32_t task_version = 0;
  std::int64_t index = 0;
  std::uint64_t seed = 0;
  std::string key;      ///< canonical sample key (specification 0.4)
  std::string address;  ///< hex hash of key + pack, haystack, tokenizer, template, style, G, T

  std::int64_t length_tokens = 0;        ///< L as requested
  std::optional<std::int32_t> depth_bp;  ///< the cell's depth, if depth is swept
  Control control = Control::kNone;
  std::string prompt_text;    ///< whole prompt, answer prefix included, engine-added BOS left out
  std::string answer_prefix;  ///< the part of prompt_text that begins the answer
  TokenIds prompt_ids;
  std::int64_t generation_budget = 0;  ///< G
  std::int64_t think_budget = 0;       ///< T
  std::int64_t haystack_units = 0;     ///< N
  std::vector<NeedlePlace> needles;    ///< in text order

  std::vector<std::string> references;  ///< in order
  std::string answer_text;  ///< what would follow the prompt if the model were right (references joined as the pack
                            ///< joins them, leading separator included): the teacher-forced continuation
  std::vector<std::string>
      candidates;  ///< answer texts in the same form that `rank` compares with; [0] is the gold one
  TaskMetric metric = TaskMetric::kAll;
  bool whole_words = false;         ///< closed vocabulary: references match whole words only
  bool first_line = false;          ///< only the reply's first line counts
  std::vector<std::string> labels;  ///< closed set the answer comes from, the question's own left out; for `label`

  /// Prompt tokens of a sample whose ids are not at hand (read back from a file of prompts).
  std::int64_t unlisted_prompt_tokens = 0;
  std::int64_t prompt_tokens() const {
    return prompt_ids.empty() ? unlisted_prompt_tokens : static_cast<std::int64_t>(prompt_ids.size());
  }
  /// L - (P + T + G), never negative.
  std::int64_t slack_tokens() const { return length_tokens - prompt_tokens() - generation_budget - think_budget; }
};

}  // namespace fathom::task
