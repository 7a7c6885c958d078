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

/// A GGUF file's scaling is read as the configuration of the model's maker means it, or as llama.cpp computes it.
enum class GgufReading { kStrict, kLcpp };

std::string_view to_string(GgufReading reading);  // "strict", "lcpp"
/// \throws ConfigError  for another name.
GgufReading parse_gguf_reading(std::string_view name);

/// Both readings of a scaling.
struct GgufScalings {
  ScalingSpec strict, lcpp;
  std::string difference;  ///< what the one does and the other does not, for a person; empty where both are the same
  GgufReading in_force = GgufReading::kStrict;
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
  /// True for a layer type whose theta and scaling the file states apart from the model's (Gemma-3's sliding layers):
  /// a change of the model's rotation leaves it alone.
  bool own_rotation = false;
  std::optional<GgufScalings> gguf;  ///< where the readings of the file differ; `scaling` is the one in force
  /// Queries and keys are normalised behind the rotation, which no factor on cos and sin outlives: none is applied.
  bool norm_after_rotation = false;
  RemapSpec remap;  ///< set at test time only
  /// What cos and sin are rounded to, attention factor included; set at test time only.
  rope::FloatFormat table_dtype = rope::FloatFormat::kFloat32;
  rope::QueryTemperature temperature;          ///< acts on the queries of every scheme
  std::map<std::string, std::string> options;  ///< the scheme's own options, canonical text
};

enum class NormKind { kRms, kLayer };
enum class Activation { kSilu, kGelu, kGeluTanh, kRelu, kReluSquared };

/// Normalisation of queries and keys before rotation.
enum class QkNorm {
  kNone,
  kPerHead,     ///< over d_head, one weight for all heads
  kPerHeadOwn,  ///< over d_head, weights of its own for every head, no bias
  kWhole,       ///< over the whole projection
  kUnit         ///< over d_head, to a mean square of 1, no weights
};

/// Which experts a token takes, and with what weights.
enum class RouterKind {
  kSoftmaxThenTop,  ///< softmax over all experts, then the best
  kTopThenSoftmax,  ///< the best logits, softmax among them
  kSigmoid,         ///< a sigmoid each; a learned correction counts for the choice only
  kSigmoidOnInput   ///< the sigmoid of the chosen logit multiplies the expert's input, not its output
};

/// A mixture of experts in place of the MLP.
struct MoeSpec {
  std::int64_t n_experts = 0;
  std::int64_t n_always = 0;  ///< further experts that every token takes, weighted by the router as the chosen are
  std::int64_t n_chosen = 0;
  std::int64_t d_ff = 0;         ///< of one expert
  std::int64_t d_ff_shared = 0;  ///< of the expert that every token takes; 0 = none
  RouterKind router = RouterKind::kSoftmaxThenTop;
  bool router_bias = false;
  bool router_correction = false;
  bool expert_bias = false;
  bool shared_gate = false;          ///< the shared expert is weighted by a sigmoid of its own
  bool renormalise = false;          ///< the chosen weights sum to 1
  double scale = 1;                  ///< on the chosen weights
  std::int64_t n_groups = 1;         ///< experts stand in groups of equal size
  std::int64_t n_chosen_groups = 1;  ///< only those of the best groups can be chosen
  std::int64_t group_best = 1;       ///< a group's score: the sum of its so many best
  double clamp = 0;  ///< above 0: gpt-oss's (up + 1) gate sigmoid(sharpness gate), gate and up cut off there
  double clamp_sharpness = 1.702;
};

/// Keys and values from a latent vector (DeepSeek's MLA); the last d_rope channels of a head rotate, and their keys are
/// the same for all heads. LayerSpec::d_head is d_nope + d_rope.
struct LatentSpec {
  std::int64_t q_rank = 0;  ///< 0: queries come straight from the hidden state
  std::int64_t kv_rank = 0;
  std::int64_t d_rope = 0;
  std::int64_t d_value = 0;
  double norm_eps = 1e-6;
};

enum class LinearKind {
  kLightning,  ///< MiniMax: fixed slopes by head, activated projections
  kMlstm       ///< xLSTM: input and forget gates made from the hidden state
};

/// Attention without softmax whose weights fade with the distance; a norm and a sigmoid gate follow. LinearKind says
/// how they fade, harness/model/linear_attention.h the formulas.
struct LinearSpec {
  LinearKind kind = LinearKind::kLightning;
  double slope_factor = 1;  ///< kLightning
  double norm_eps = 1e-6;
  std::int64_t d_key = 0;   ///< kMlstm: width of queries and keys, at most d_head, which is that of the values
  double gate_softcap = 0;  ///< kMlstm
  /// kMlstm: the state is carried over in bf16 at every multiple of so many tokens (0 = never), as the reference does.
  std::int64_t state_chunk = 0;
};

struct LayerSpec {
  std::int64_t n_heads = 0;
  std::int64_t n_kv_heads = 0;
  std::int64_t d_head = 0;
  std::int64_t d_ff = 0;
  std::optional<std::int64_t> window;   ///< key j visible iff i - window < j <= i
  std::optional<std::int64_t> chunk;    ///< key j visible iff j <= i and j / chunk == i / chunk
  bool softmax_attention = true;        ///< false: linear attention or a state-space layer, which no scheme acts on
  std::optional<double> softmax_scale;  ///< nothing = 1 / sqrt(d_head)
  double softcap = 0;                   ///< scores become cap tanh(score / cap); 0 = none
  bool sinks = false;                   ///< a learned logit a head that takes part in the softmax and has no value
  bool qk_norm = true;                  ///< false: this layer goes without DecoderConfig::qk_norm
  std::optional<MoeSpec> moe;           ///< in place of the MLP
  std::optional<LatentSpec> latent;
  std::optional<LinearSpec> linear;  ///< in place of softmax attention
  /// Above 0: to keys, values, and what attention and MLP add, a causal convolution over so many tokens is added.
  std::int64_t conv_width = 0;
  double attention_carried = 1, attention_added = 1;  ///< x becomes carried x + added attention(x), where
  double mlp_carried = 1, mlp_added = 1;              ///< DecoderConfig::residual_after_norm says so
  PositionSpec position;
};

/// The encoder of an encoder-decoder: layers of the decoder's shape that see everything, with T5's bias in both
/// directions; every decoder layer attends to its result besides.
struct EncoderSpec {
  std::int64_t n_layers = 0;
  std::int64_t n_buckets = 0;
  std::int64_t max_distance = 0;
};

struct DecoderConfig {
  std::string name;
  std::string architecture;  ///< "llama", …; "fathom" for models trained here
  std::int64_t vocab_size = 0;
  std::int64_t stored_vocab = 0;  ///< rows of embedding and head in the file, where only the first vocab_size are used
  std::int64_t d_model = 0;
  std::int64_t d_embedding = 0;  ///< of embedding and head, with projections from and to d_model; 0 = d_model, none
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
  bool head_bias = false;
  std::optional<EncoderSpec> encoder;
  bool mlp_scale = false;  ///< a learned number multiplies what the MLP adds, or the weights of the experts

  bool pre_norm = true;              ///< a norm before attention and MLP
  bool post_norm = false;            ///< a norm after attention and MLP, before the sum
  bool norm_after_sum = false;       ///< norms of x + attention(x) and of x + mlp(x), and no others in a layer
  bool final_norm = true;            ///< a norm before the head
  bool embedding_norm = false;       ///< a norm after the embedding
  bool parallel_residual = false;    ///< x + attention(norm x) + mlp(norm x)
  bool shared_norm = false;          ///< where it is parallel: attention and MLP share one norm
  bool residual_after_norm = false;  ///< what is carried past attention and MLP is their normalised input
  QkNorm qk_norm = QkNorm::kNone;
  double qkv_clip = 0;  ///< queries, keys and values are cut off at +- this; 0 = none
  double embedding_multiplier = 1;
  double residual_multiplier = 1;  ///< on what attention and MLP add
  double logit_multiplier = 1;
  double logit_softcap = 0;  ///< logits become cap tanh(logit / cap); 0 = none
  std::vector<std::string> warnings;

  std::int64_t n_layers() const { return static_cast<std::int64_t>(layers.size()); }
};

/// Numbers that a layer remembers of every token besides its key and value: inputs of convolutions, gates.
std::int64_t remembered_width(const DecoderConfig& config, const LayerSpec& layer);

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

/// L0 of a model: what its file declares for a scaling method, else the trained length, else the claimed one.
std::int64_t default_original_context(const DecoderConfig& config);

/// The layer whose rotation stands for the model in one line: softmax attention, rotating and seeing everything, as far
/// as the model has such a layer.
const LayerSpec& telling_layer(const DecoderConfig& config);

/// Canonical text of all position settings (for identities and the report).
std::string describe_position(const DecoderConfig& config);

}  // namespace fathom::checkpoint
