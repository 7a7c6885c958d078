#pragma once
// Tokenizers of real checkpoints.

#include <memory>

#include "harness/checkpoint/gguf_file.h"
#include "harness/text/chat_template.h"
#include "harness/text/tokenizer.h"

namespace fathom::checkpoint {

/// From `tokenizer.ggml.*`. \throws ModelError  for a kind that is not supported, or lists that do not fit together.
std::unique_ptr<text::Tokenizer> make_gguf_tokenizer(const GgufFile& file);
/// From `tokenizer.chat_template`; nothing if there is none or its family is unknown.
std::optional<text::ChatTemplate> gguf_chat_template(const GgufFile& file);

/// From a folder's tokenizer.json (models trained here, or Hugging Face's), else its tokenizer.model; with the policy
/// of tokenizer_config.json. \throws ModelError, DataError
std::unique_ptr<text::Tokenizer> make_folder_tokenizer(const std::string& folder);
/// From a folder's chat_template.jinja or tokenizer_config.json; nothing if there is none or its family is unknown.
std::optional<text::ChatTemplate> folder_chat_template(const std::string& folder);

}  // namespace fathom::checkpoint
