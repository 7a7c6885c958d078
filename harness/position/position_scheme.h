#pragma once
// The position hooks: everything by which a scheme can act on a decoder. Attention and the decoder never ask which
// scheme they have.
//
// Why these hooks and not three: xPos must know query from key; temperatures scale queries by position; Inkling, CoPE
// and GRAPE-A make a bias from the block's queries, keys or hidden states; Self-Extend, ReRoPE and dual chunk attention
// sort the pairs into regions, each with positions of its own. Biases exist per block only, never [q_len x k_len].

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/checkpoint/decoder_config.h"
#include "harness/core/random.h"
#include "harness/kernels/block_attention.h"
#include "harness/position/position_registry.h"
#include "harness/rope/query_temperature.h"

namespace fathom::position {

class AngleTables;

enum class Role { kQuery, kKey };

/// One block of logits that a bias is asked for.
struct LogitBlock {
  torch::Tensor q_positions;  ///< [batch, q_len] int64
  torch::Tensor k_positions;  ///< [batch, k_len] int64
  torch::Tensor q;            ///< [batch, heads, q_len, d_head] after rotation; undefined unless needs_q_and_k()
  torch::Tensor k;            ///< [batch, kv_heads, k_len, d_head]; undefined unless needs_q_and_k()
  torch::Tensor q_hidden;     ///< [batch, q_len, d_model] the attention's input; undefined unless needs_hidden()
  /// [batch or 1, q_len, k_len] bool: pairs whose key the query may see. Undefined where the positions say so: a key is
  /// seen iff its position is at most the query's.
  torch::Tensor visible{};
};

/// The block's `visible`, or what the positions say.
torch::Tensor visible_pairs(const LogitBlock& block);

class PositionScheme : public torch::nn::Module {
 public:
  /// Signal added at the input, once, before layer 0. x: [batch, seq, d_model]; positions: [batch, seq] int64. Default
  /// returns x.
  virtual torch::Tensor embed(const torch::Tensor& x, const torch::Tensor& positions);

  virtual bool rotates() const { return false; }
  /// Rotation of queries or keys. x: [batch, seq, heads, d_head]; positions: [batch, seq] int64; `total_len` is the
  /// whole sequence, cache included; `region` counts n_regions().  Returns the same shape and dtype; angles are double,
  /// tables float32.
  virtual torch::Tensor rotate(const torch::Tensor& x, Role role, const torch::Tensor& positions,
                               std::int64_t total_len, std::int64_t region = 0);
  /// Identity of the angle table at this length: keys rotated under one identity must not meet queries of another.
  /// Constant for fixed tables.
  virtual std::uint64_t rotation_state(std::int64_t total_len) const;

  /// True if the layer's remap is in force; a scheme that knows none must not be given one.
  virtual bool remaps_positions() const { return false; }
  /// Regions of pairs that are rotated each in their own way (rope/position_remap.h); 1 for all but the remaps.
  virtual std::int64_t n_regions() const { return 1; }
  /// Region of every pair, [q_len, k_len] int64; q_positions: [q_len], k_positions: [k_len] int64. Asked for only where
  /// n_regions() > 1.
  virtual torch::Tensor region(const torch::Tensor& q_positions, const torch::Tensor& k_positions) const;

  /// Multiplier of each query, [batch, seq] float32, or an undefined tensor for none: the layer's temperature
  /// (rope/query_temperature.h), times what the scheme itself asks for.
  virtual torch::Tensor query_scale(const torch::Tensor& positions);
  /// \throws ConfigError  for values that the kind of temperature cannot have.
  void set_temperature(const rope::QueryTemperature& temperature);
  /// Multiplier on the softmax scale (DeepSeek's m^2), 1 = none.
  virtual double softmax_scale_factor(std::int64_t total_len) const;

  virtual bool has_bias() const { return false; }
  virtual bool needs_q_and_k() const { return false; }
  virtual bool needs_hidden() const { return false; }
  /// Bias of one block, differentiable: [batch or 1, heads, q_len, k_len] float32 (double for double inputs). Blocks of
  /// one query block are visited from the newest keys to the oldest, so a scheme that sums along the keys (CoPE) can
  /// carry its sum; `first_block` marks the newest.
  virtual torch::Tensor block_bias(const LogitBlock& block, bool first_block);
  /// True if block_bias of older keys builds on what newer keys left behind: the blocks of a query block are then
  /// differentiated together.
  virtual bool carries_along_keys() const { return false; }
  /// The same for inference, where it depends on positions and head only; empty if it needs more.
  virtual kernels::BiasFunction bias_function() const;
  /// Parameters that block_bias reads: the scheme's own, unless another layer holds them.
  virtual std::vector<torch::Tensor> bias_parameters() const;
  /// Starting values for training of the parameter registered as `name`, drawn from the stream alone. Default:
  /// N(0, 0.02^2), a table that starts almost flat. `values` is contiguous float32 on the CPU.
  virtual void draw_parameter(const std::string& name, torch::Tensor& values, RngStream& rng) const;

  /// Longest sequence, or nothing.
  virtual std::optional<std::int64_t> max_positions() const { return std::nullopt; }

 private:
  rope::QueryTemperature temperature_;
};

/// What a scheme is made for: one layer (or, for `embed`, the whole decoder: layer 0's spec).
struct SchemeContext {
  const checkpoint::DecoderConfig* config = nullptr;
  std::int64_t layer = 0;
  /// Layer 0's scheme, nothing for layer 0 itself: where a table is shared by all layers it lives there. A scheme must
  /// not register it again.
  std::shared_ptr<PositionScheme> first_layer;
  /// Angle tables shared by the decoder's layers; nothing = the scheme keeps its own.
  std::shared_ptr<AngleTables> tables;

  const checkpoint::LayerSpec& spec() const { return config->layers[static_cast<std::size_t>(layer)]; }
};

/// The torch-free description plus the factory.
struct PositionSchemeEntry : PositionInfo {
  std::shared_ptr<PositionScheme> (*make)(const SchemeContext& context);
};

namespace schemes {
#define FATHOM_POSITION_SCHEME(name) PositionSchemeEntry name##_entry();
#include "harness/position/schemes.inc"
#undef FATHOM_POSITION_SCHEME
}  // namespace schemes

const Registry<PositionSchemeEntry>& position_schemes();

/// The scheme that the layer's spec names, with the layer's temperature. \throws ConfigError, ModelError for settings
/// that the scheme refuses.
std::shared_ptr<PositionScheme> make_position_scheme(const SchemeContext& context);

}  // namespace fathom::position
