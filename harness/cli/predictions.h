#pragma once
// Predictions of any engine: one JSON object a line, {"key": "…", "pred": "…"}; {"index": 3, "pred": "…"} where the
// index is unique in the file of prompts. Other fields are ignored, so RULER's own prediction files read as they are.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/cli/prompt_lines.h"

namespace fathom::cli {

struct Prediction {
  std::optional<std::string> text;  ///< the generated text only; nothing: the engine gave none ("pred": null)
  std::string error;                ///< what the engine said of its failure; optional field "error"
  std::int64_t line = 0;            ///< in the file, from 1
};

/// Predictions by sample key.
/// \param names  of all prompts, in file order.
/// \throws DataError with file and line for bad JSON, a key or index of no prompt, an index that stands for several
/// prompts, and a second prediction of one prompt.
std::map<std::string, Prediction> read_predictions(const std::string& path, const std::vector<PromptLineName>& names);

}  // namespace fathom::cli
