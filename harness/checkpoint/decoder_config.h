#pragma once
// The resolved description of a decoder: what Hugging Face's config.json and GGUF metadata are translated into, once.
// Plain structs.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/options.h"
#include "harness/rope/position_remap.h"
#include "harness/rope/query_temperature.h"
#include "harness/rope/rope_scaling.h"

namespace fathom::checkpoint {

enum class RopeLayout {
  kSplitHalf,             ///< pairs (i, i + r/2)
  kInterleaved,           ///< pairs (2i, 2i + 1)
  kInterleavedInSplitOut  ///< reads pairs (2i, 2i + 1), writes halves (DeepSeek in Hugging Face's form)
};
enum class RotarySide { kPrefix, kSuffix };

std::string_view to_string(RopeLayout layout);  // "split_half", "interleaved", "interleaved_in_split_out"
std::string_view to_string(RotarySide side);    // "prefix", "suffix"

/// How a scaling method is named and parametrised; resolved by resolve_frequencies().
struct ScalingSpec {
  std::string method = "none";
  double factor = 1;
  std::int64_t original_context = 0;  ///< L0
  rope::LengthPolicy length_policy = rope::LengthPolicy::kConsistent;
  std::int64_t frozen_length = 0;  ///< for kFrozen
  OptionSource options;            ///< the method's own knobs
};

/// A training-free remap of positions (rope/position_remap.h); "none" is plain rotation.
struct RemapSpec {
  std::string method = "none";
  OptionSource options;
};

/// Position settings of one layer.
struct PositionSpec {
  std::string kind = "rope";  ///< name in the position registry: rope, nope, alibi, learned, …
  RopeLayout layout = RopeLayout::kSplitHalf;
  RotarySide side = RotarySide::kPrefix;
  std::int64_t rotary_dim = 0;  ///< 0 where nothing rotates
  double rope_base = 0;
  ScalingSpec scaling;
  RemapSpec remap;                             ///< set at test time only
  rope::QueryTemperature temperature;          ///< acts on the queries of every scheme
  std::map<std::string, std::string> options;  ///< the scheme's own options, canonical text
};

enum class NormKind { kRms, kLayer };
enum class Activation { kSilu, kGelu, kGeluTanh, kRelu };

struct LayerSpec {
  std::int64_t n_heads = 0;
  std::int64_t n_kv_heads = 0;
  std::int64_t d_head = 0;
  std::int64_t d_ff = 0;
  std::optional<std::int64_t> window;   ///< key j visible iff i - window < j <= i
  std::optional<std::int64_t> chunk;    ///< key j visible iff j <= i and j / chunk == i / chunk
  bool softmax_attention = true;        ///< false: linear attention or a state-space layer, which no scheme acts on
  std::optional<double> softmax_scale;  ///< nothing = 1 / sqrt(d_head)
  PositionSpec position;
};

struct DecoderConfig {
  std::string name;
  std::string architecture;  ///< "llama", …; "fathom" for models trained here
  std::int64_t vocab_size = 0;
  std::int64_t d_model = 0;
  std::vector<LayerSpec> layers;
  std::int64_t claimed_context = 0;             ///< declared by the maker
  std::optional<std::int64_t> trained_context;  ///< longest sequence of training, where known

  NormKind norm = NormKind::kRms;
  double norm_eps = 1e-5;
  bool norm_bias = false;  ///< LayerNorm with bias
  Activation activation = Activation::kSilu;
  bool gated_mlp = true;        ///< act(gate(x)) * up(x); false: act(up(x))
  bool attention_bias = false;  ///< bias on q, k, v
  bool attention_out_bias = false;
  bool mlp_bias = false;
  bool tied_head = false;
  std::vector<std::string> warnings;

  std::int64_t n_layers() const { return static_cast<std::int64_t>(layers.size()); }
};

/// The frequency list in force for one layer at a sequence length; empty list where nothing rotates. Under kFrozen it
/// is the list of the frozen length; under kHf that of a model that has seen nothing longer.
///
/// \throws ConfigError  for what the scaling method cannot do.
rope::RopeFrequencies resolve_frequencies(const PositionSpec& position, std::int64_t seq_len);
/// True if the list changes with the sequence length under the spec's policy.
bool depends_on_length(const PositionSpec& position);
/// True if the scaling method's list changes with the sequence length, whatever the policy makes of it.
bool scales_with_length(const PositionSpec& position);

/// The remap of a layer with everything derived from L0 filled in; null for "none".
///
/// \throws ConfigError  for an unknown remap, options it refuses, or an L0 that is not known.
std::unique_ptr<rope::PositionRemap> make_remap(const PositionSpec& position);

/// What a user may change at test time on any model with rotation; absent members leave what the file says.
struct PositionOverride {
  std::optional<std::string> scaling;  ///< method name, "declared" (what the file says) or "base" (theta times factor)
  double factor = 1;
  std::optional<std::int64_t> original_context;
  std::optional<double> rope_base;
  rope::LengthPolicy length_policy = rope::LengthPolicy::kConsistent;
  std::int64_t frozen_length = 0;
  OptionSource scaling_options;
  std::optional<RemapSpec> remap;
  std::optional<rope::QueryTemperature> temperature;  ///< where its kind counts tokens, length 0 = the original context
};

/// L0 of a model: what its file declares for a scaling method, else the trained length, else the claimed one.
std::int64_t default_original_context(const DecoderConfig& config);

/// Applies an override to every rotating layer, its temperature to every layer. "base" multiplies theta and drops a
/// declared method. The original context of a new method is the override's, else the declared method's, else the
/// trained context, else the claimed one.
///
/// \throws ConfigError  if no layer rotates and a scaling or remap other than none is asked for, and for what a method,
/// remap or temperature refuses.
DecoderConfig apply_override(const DecoderConfig& config, const PositionOverride& change);

/// Canonical text of all position settings (for identities and the report).
std::string describe_position(const DecoderConfig& config);

}  // namespace fathom::checkpoint
