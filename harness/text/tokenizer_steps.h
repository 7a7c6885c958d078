#pragma once
// The steps around the model that a tokenizer.json lists: normalizer, pre_tokenizer, post_processor.

#include <optional>
#include <string>
#include <vector>

#include "harness/text/normalizer.h"
#include "harness/text/pretokenizer.h"

namespace fathom::text {

struct TokenizerSteps {
  std::vector<NormalizerStep> normalizer;
  std::vector<NormalizerStep> rewriting;  ///< what pre-tokenizers change in the text
  std::vector<SplitStep> splits;
  bool byte_level = false;                  ///< words reach the model as bytes, spelled in GPT-2's characters
  std::string blank_mark;                   ///< what stands for a blank inside tokens; empty = the blank itself
  std::optional<PrefixPlace> blank_prefix;  ///< where a blank is put in front
};

/// \param normalizer, pre_tokenizer  JSON texts of these two members; "null" for none.
/// \param where  names the file in messages.
/// \throws DataError `WHERE: …`  for a step that is unknown or has an option this program does not honour.
TokenizerSteps read_tokenizer_steps(const std::string& normalizer, const std::string& pre_tokenizer,
                                    const std::string& where);

/// Texts of the special tokens that are put around a sequence.
struct TokenizerFrame {
  bool is_said = false;  ///< false: nothing in the post-processor says it
  std::optional<std::string> front, back;
};
/// \throws DataError `WHERE: …`  for an unknown processor, and for several tokens on one side.
TokenizerFrame read_tokenizer_frame(const std::string& post_processor, const std::string& where);

}  // namespace fathom::text
