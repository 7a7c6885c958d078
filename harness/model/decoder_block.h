#pragma once
// The parts of one decoder block: what stands in front of the attention, what follows it, and the MLP or the experts.

#include <torch/types.h>

#include <functional>
#include <string>
#include <vector>

#include "harness/checkpoint/decoder_config.h"
#include "harness/model/ops.h"

namespace fathom::model {

struct LinearParameters {
  torch::Tensor weight, bias;
};

struct NormParameters {
  torch::Tensor weight, bias;
};

struct MlpParameters {
  LinearParameters gate, up, down;
};

struct MoeParameters {
  LinearParameters router, shared_gate;
  torch::Tensor correction, scale;
  std::vector<MlpParameters> experts;
  MlpParameters shared;
};

/// One block's parameters; undefined where the architecture has none.
struct BlockParameters {
  NormParameters attention_norm, attention_post_norm, mlp_norm, mlp_post_norm, q_norm, k_norm;
  LinearParameters q, k, v, o;
  LinearParameters q_a, q_b, kv_a, kv_b;
  NormParameters q_a_norm, kv_a_norm;
  NormParameters out_norm;
  LinearParameters out_gate, input_gate, forget_gate;
  torch::Tensor k_conv, v_conv, attention_conv, mlp_conv, mlp_scale;
  torch::Tensor sinks;
  NormParameters cross_norm;
  LinearParameters cross_q, cross_k, cross_v, cross_o;
  MlpParameters mlp;
  MoeParameters moe;
};

/// Tensor by canonical name inside the block, undefined if there is none.
using TensorLookup = std::function<torch::Tensor(const std::string& name)>;
BlockParameters block_parameters(const checkpoint::LayerSpec& spec, const TensorLookup& find);

/// Attention with its projections, on `call.hidden`; the call's queries, keys and values are filled in. [batch, seq,
/// d_model]
torch::Tensor attend(const checkpoint::DecoderConfig& config, const BlockParameters& block, ops::AttentionCall& call);

/// Attention of every token to every token, of an encoder. bias: [1, n_heads, seq, seq], added to the scores.
torch::Tensor attend_everywhere(const checkpoint::LayerSpec& spec, const BlockParameters& block, const torch::Tensor& h,
                                const torch::Tensor& bias);

/// Attention to the encoder's result. h: [batch, seq, d_model]; encoded: [1, n, d_model]
torch::Tensor attend_across(const checkpoint::LayerSpec& spec, const BlockParameters& block, const torch::Tensor& h,
                            const torch::Tensor& encoded);

/// MLP or experts. h: [batch, seq, d_model]; the call says which sequences they are.
torch::Tensor feed_forward(const checkpoint::DecoderConfig& config, const BlockParameters& block,
                           const ops::AttentionCall& call, const torch::Tensor& h);

}  // namespace fathom::model
