#pragma once
// A checkpoint written out as GGUF, with the metadata keys, tensor names and rearrangements of llama.cpp's converter:
// what the reader under test has to undo. Nothing here is shared with the reader.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "harness/checkpoint/checkpoint.h"

namespace fathom::test {

/// How converters of different years lay out the same model.
enum class GgufYear {
  kNow,
  kBefore2025  ///< DeepSeek's keys and values in one tensor, Phi-2's queries, keys and values likewise
};

/// True if llama.cpp converts this `model_type`.
bool has_gguf_form(std::string_view model_type);

/// The GGUF name of a `model_type` that has one.
std::string gguf_architecture(std::string_view model_type);

/// The bytes of a GGUF file, weights in float32. What the converter leaves out although it changes what is computed is
/// written under the key that the loader would look for: windows, their pattern, Gemma's softmax scale.
/// \param source  a checkpoint opened from Hugging Face's form.
/// \param config  its config.json, in version 5's spelling.
std::string gguf_of(const checkpoint::Checkpoint& source, const nlohmann::json& config, GgufYear year = GgufYear::kNow);

/// The same in so many files, as llama.cpp's splitter writes them without tensors in the first: that one has the
/// metadata, each further one its share of the tensors.
std::vector<std::string> split_gguf_of(const checkpoint::Checkpoint& source, const nlohmann::json& config,
                                       std::uint16_t n_files);

}  // namespace fathom::test
