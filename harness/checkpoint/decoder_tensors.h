#pragma once
// The tensors of a decoder under their canonical names.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/checkpoint/decoder_config.h"

namespace fathom::checkpoint {

struct NamedShape {
  std::string name;
  std::vector<std::int64_t> shape;  ///< row-major, [out, in] for matrices
};

/// What a decoder of this configuration holds, but for the parameters of its position schemes:
///   token_embedding [vocab, d_model] · embedding_norm · layers.N.* · final_norm · head.weight [vocab, d_model], .bias
/// and in a layer
///   attention_norm · attention.{q,k,v,o} · attention.{q,k}_norm · attention.sinks [n_heads] · attention_post_norm ·
///   mlp_norm · mlp.{gate,up,down} · mlp_post_norm · mlp.scale [1]
/// With a latent attention attention.{q_a,q_a_norm,q_b,kv_a,kv_a_norm,kv_b} stand in place of q, k and v; a linear one
/// has attention.{out_norm,out_gate} and xLSTM's attention.{input_gate,forget_gate} besides. Convolutions are called
/// attention.{k_conv,v_conv}, attention_conv and mlp_conv [channels, 1, tokens]; with experts there are
/// mlp.{router,router_correction} · mlp.experts.E.{gate,up,down} · mlp.always.E.{gate,up,down} ·
/// mlp.shared.{gate,up,down} · mlp.shared_gate.
/// An encoder-decoder has cross_norm and cross.{q,k,v,o} in every layer, encoder.layers.N.* like the decoder's,
/// encoder.final_norm and encoder.table [buckets, n_heads].
/// Norms and linear maps have a .weight and, where the configuration says so, a .bias. Position parameters are called
/// position_embedding [positions, d_model] or layers.N.position.*.
///
/// \throws ModelError  for sizes that cannot be.
std::vector<NamedShape> decoder_tensors(const DecoderConfig& config);

/// The part of decoder_tensors() that belongs to one layer, without the "layers.N." in front.
std::vector<NamedShape> layer_tensors(const DecoderConfig& config, std::int64_t layer);

/// The part that belongs to one layer of the encoder, without the "encoder.layers.N." in front.
std::vector<NamedShape> encoder_layer_tensors(const DecoderConfig& config);

/// The table of learned absolute positions, nothing where there is none.
std::optional<NamedShape> position_table(const DecoderConfig& config);

/// Parameters of a layer's position scheme, for schemes that loaded models have. Names as in layer_tensors().
std::vector<NamedShape> layer_position_tensors(const DecoderConfig& config, std::int64_t layer);

}  // namespace fathom::checkpoint
