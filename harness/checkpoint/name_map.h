#pragma once
// What a family calls its tensors, and how it packs several of ours into one of its own: data, from which the rules of
// a checkpoint are made.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/checkpoint/decoder_config.h"

namespace fathom::checkpoint {

/// Where the values of a tensor stand inside a stored one: element (r, c) of a tensor of `shape`, seen as a matrix, is
/// number offset + (r / group_rows) * group_stride + (r % group_rows) * row_stride + c * column_stride.
struct TensorView {
  std::int64_t offset = 0;
  std::int64_t group_rows = 0;  ///< 0: all rows are one group
  std::int64_t group_stride = 0;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 1;
};

/// One tensor that a checkpoint of this configuration must hold.
struct TensorRule {
  std::string canonical;            ///< name in decoder_tensors.h
  std::string stored;               ///< name in the file
  std::vector<std::int64_t> shape;  ///< of the canonical tensor
  std::vector<std::int64_t> stored_shape;
  TensorView view = {};
  float added = 0;  ///< to every value
  /// Not empty: rows come in turns from these, view.group_rows of each, and nothing stands under the name above.
  std::vector<TensorRule> parts = {};
};

/// How the canonical tensors that have the same stored name share it.
enum class Packing {
  kAlone,
  kQkv,                ///< rows of q, then of k, then of v
  kQkvByHead,          ///< for every key-value head: its queries, its key, its value
  kGateUp,             ///< rows of gate, then of up
  kGateUpAlternating,  ///< a row of gate, a row of up, and so on
  kRowsApart           ///< every row is a stored vector of its own, `#` in its name the number of the row
};

/// A name of ours and one of theirs. `#` in ours stands for the number of an expert ("mlp.experts.#.gate",
/// "mlp.always.#.gate"); without `#` in theirs all experts are one tensor with the expert as its first dimension. Names
/// that end in .weight or .bias, or have no such part, stand for themselves; others for both.
struct StoredName {
  std::string_view canonical;
  std::string_view stored;
  Packing packing = Packing::kAlone;
  bool transposed = false;  ///< matrices are stored [in, out]
};

struct NameMap {
  std::string_view layer;               ///< what stands before the number of a layer, "model.layers."
  std::vector<StoredName> layers;       ///< of one layer, after "N."
  std::vector<StoredName> whole;        ///< of the decoder
  bool norms_less_one = false;          ///< norm weights are stored less 1
  std::string_view encoder_layer = {};  ///< as `layer`, of an encoder
  std::vector<StoredName> encoder_layers = {};
  std::vector<StoredName> sparse_layers = {};  ///< of a layer with experts, where they differ
  std::vector<StoredName> linear_layers = {};  ///< of a layer with linear attention, where they differ
};

/// The rules for every tensor of decoder_tensors(), and for the position parameters that the map names. \throws
/// InvariantError  for a tensor that the map does not know.
std::vector<TensorRule> map_tensors(const DecoderConfig& config, const NameMap& names);

/// Parts of `base` replaced, by canonical name, and others added.
std::vector<StoredName> with_names(std::vector<StoredName> base, const std::vector<StoredName>& changed);

/// The names that most of Hugging Face's decoders share, after Llama's, and those of most GGUF files.
const NameMap& llama_style_names();
const NameMap& gguf_style_names();
/// GGUF names of a file that holds queries, keys and values of a layer in one tensor.
NameMap with_fused_qkv(NameMap names);
/// The rules for "attn_kv_b" of a GGUF file that holds its keys and values apart, as llama.cpp writes them since 2025:
/// attn_k_b [heads, rank, d_nope] and attn_v_b [heads, d_value, rank].
void split_latent_values(const DecoderConfig& config, std::vector<TensorRule>& rules);
/// Hugging Face's names of Gemma 2 and 3: four norms a layer, stored less one.
NameMap gemma_style_names();
/// Hugging Face's names of DeepSeek-V2 and V3: latent attention, a router, experts and shared ones.
NameMap latent_expert_names();

/// Reads rows [row_begin, row_end) of a viewed tensor of `shape`. \param read  gives elements [begin, end) of the
/// stored tensor.
using ElementReader = std::function<void(std::int64_t begin, std::int64_t end, float* out)>;
void read_view(const TensorRule& rule, std::int64_t row_begin, std::int64_t row_end, const ElementReader& read,
               float* out);

}  // namespace fathom::checkpoint
