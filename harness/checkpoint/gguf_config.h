#pragma once
// The parts of GGUF metadata that decoders share.

#include <string>
#include <string_view>
#include <vector>

#include "harness/checkpoint/decoder_config.h"
#include "harness/checkpoint/gguf_file.h"

namespace fathom::checkpoint {

/// The resolved positions (gguf_positions.h) with what running a decoder needs besides: norm, feed-forward widths, the
/// vocabulary from the embedding's rows, and from the tensors that are there the biases, the norms of queries and keys,
/// and whether the head is the embedding.
/// \throws ModelError  naming the key that is missing or out of range, a layer that is not plain softmax attention, or
/// what no key tells of the file and llama.cpp only supposes.
DecoderConfig read_gguf_decoder(const GgufFile& file);

/// Which layers have experts.
struct GgufSparseLayers {
  std::int64_t first = 0;
  std::int64_t step = 1;  ///< from the first on, those with (i + 1) % step == 0
};

/// Adds the experts that <architecture>.expert_count and its kin declare. Their width is expert_feed_forward_length,
/// where it is missing that of the MLP. What the file says of gating (1 softmax, 2 sigmoid, 3 softmax of the chosen),
/// of the sum and the scale of the weights takes the place of what `moe` holds; tensors tell of biases and corrections.
/// Nothing happens where there are none.
/// \throws ModelError  naming the key that is missing or out of range.
void add_gguf_experts(const GgufFile& file, MoeSpec moe, GgufSparseLayers layers, DecoderConfig& config);

/// The keys that add_gguf_experts() reads, and `more`: for ArchitectureEntry::gguf_keys.
std::vector<std::string_view> gguf_expert_keys(std::vector<std::string_view> more = {});

/// A metadata number above 0. \throws ModelError  if absent, or not above 0.
double required_gguf_positive(const GgufFile& file, const std::string& key);

/// \param honoured  keys, after the architecture, that change what is computed and that the family reads.
/// \throws ModelError  naming another such key that is there and says something.
void refuse_gguf_keys(const GgufFile& file, const std::string& architecture,
                      const std::vector<std::string_view>& honoured);

}  // namespace fathom::checkpoint
