#pragma once
// The file that `generate` writes and `score` reads: one JSON object a line, in the shape of RULER's data files.
//
// What other programs read: index, task, variant, input, answer_prefix, outputs, length, length_w_model_temp,
// max_new_tokens, depth, token_position_answer, key. What `score` needs besides stands in the object "fathom"; the
// first line's also holds what is true of the whole file ("head").

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/eval/records.h"
#include "harness/task/sample.h"

namespace fathom::cli {

/// What is true of all lines of a file.
struct PromptFileHead {
  eval::RunRecord run;
  std::string model;  ///< whose tokenizer and template the prompts are made for
  std::int64_t claimed_context = 0;
  std::optional<std::int64_t> trained_context;
  std::vector<eval::CellRecord> unbuilt;
};

/// One prompt with everything that scoring its answer needs.
struct PromptLine {
  std::int64_t index = 0;  ///< line number from 0
  task::Sample sample;     ///< without candidates; without prompt ids unless they were asked for
  double in_text_guess = 0;
  double blind_guess = 0;
  bool own_length = false;         ///< the task has sizes of its own
  bool add_bos = false;            ///< the engine must put BOS in front: it does not stand in the text
  std::vector<std::string> stops;  ///< texts that end a reply
};

enum class PromptIds { kOmit, kWrite };

/// One line, without the line feed. \param head  for the first line of a file, else null.
/// \throws DataError for a prompt that is not UTF-8.
std::string prompt_line_json(const PromptLine& line, PromptIds ids, const PromptFileHead* head);

/// Key and index only, for a first pass over a large file. \throws DataError
struct PromptLineName {
  std::string key;
  std::int64_t index = 0;
};
PromptLineName read_prompt_name(std::string_view json, const std::string& where);

/// \param where  "FILE:LINE", for messages. \throws DataError for anything that `generate` does not write.
PromptLine read_prompt_line(std::string_view json, const std::string& where);
/// \throws DataError if the line is not the first of such a file.
PromptFileHead read_prompt_head(std::string_view json, const std::string& where);

}  // namespace fathom::cli
