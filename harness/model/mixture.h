#pragma once
// The MLP, and mixtures of them.

#include <torch/types.h>

#include "harness/checkpoint/decoder_config.h"
#include "harness/model/decoder_block.h"

namespace fathom::model {

/// down(act(gate(h)) * up(h)), or down(act(up(h))) without a gate.
torch::Tensor mlp(bool gated, checkpoint::Activation activation, const MlpParameters& parameters,
                  const torch::Tensor& h);

/// What every token's chosen experts make of it, weighted, plus the shared expert. h: [batch, seq, d_model]. Each
/// expert sees its tokens in one product; a token's experts are summed in the order of their numbers.
torch::Tensor mixture_of_experts(const checkpoint::DecoderConfig& config, const checkpoint::MoeSpec& moe,
                                 const MoeParameters& parameters, const torch::Tensor& h);

}  // namespace fathom::model
