#pragma once
// A checkpoint on disk: configuration, tensors by canonical name, tokenizer. Torch-free.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/checkpoint/decoder_config.h"
#include "harness/text/chat_template.h"
#include "harness/text/tokenizer.h"

namespace fathom::checkpoint {

/// Tensors have the canonical names of harness/checkpoint/decoder_tensors.h, whatever the file calls them, row-major,
/// [out, in] for matrices. Query and key rows stand in the layout that PositionSpec.layout says.
struct TensorInfo {
  std::string name;  ///< canonical
  std::vector<std::int64_t> shape;
  std::string stored_type;  ///< "F32", "Q4_1", …
};

class Checkpoint {
 public:
  virtual ~Checkpoint() = default;
  virtual const DecoderConfig& config() const = 0;
  virtual const std::vector<TensorInfo>& tensors() const = 0;
  /// Dequantises rows [row_begin, row_end) of a tensor's first dimension; the rows of a vector are its elements.
  ///
  /// \param out  takes (row_end - row_begin) * product of the other dimensions values.
  /// \throws ModelError  for an unknown name or rows that do not exist.
  virtual void read_float32(std::string_view name, std::int64_t row_begin, std::int64_t row_end, float* out) const = 0;
  /// False for files that hold weights alone.
  virtual bool has_tokenizer() const { return true; }
  /// \throws ModelError  if there is none, or one of an unknown kind.
  virtual std::unique_ptr<text::Tokenizer> make_tokenizer() const = 0;
  /// The checkpoint's chat template, where it has a known one.
  virtual std::optional<text::ChatTemplate> chat_template() const = 0;
  /// Hex hash that identifies weights and configuration (hash of the file's bytes, computed once).
  virtual std::string fingerprint() const = 0;
};

/// Opens a `.gguf` file, or a folder with config.json and model.safetensors. \throws ModelError, DataError
std::unique_ptr<Checkpoint> open_checkpoint(const std::string& path);

/// Positions alone, of a checkpoint or of a bare config.json: no weights needed, and the decoder need not be one that
/// this build can run. Vocabulary, norms and MLP are left empty unless the model was trained here.
/// \throws ModelError, DataError
DecoderConfig read_config(const std::string& path);

}  // namespace fathom::checkpoint
