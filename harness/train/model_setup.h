#pragma once
// From a training spec to a decoder with drawn weights.

#include <torch/types.h>

#include <string>

#include "harness/checkpoint/decoder_config.h"
#include "harness/core/random.h"
#include "harness/model/decoder_lm.h"
#include "harness/train/recipe.h"

namespace fathom::train {

/// \throws ConfigError for a scheme, layout or layer pattern that does not exist or does not fit.
checkpoint::DecoderConfig make_training_config(const TrainSpec& spec, const Recipe& recipe, std::int64_t vocab_size);

/// Draws every parameter from a stream of its own, so that a tensor's values depend on its name and the key only: token
/// and position embedding N(0, embedding_std^2), matrices and MLP biases U(+-1/sqrt(fan_in)), norms 1 and 0, small
/// scheme tables N(0, 0.02^2).
void draw_weights(model::DecoderLm& decoder, const Recipe& recipe, const RngKey& key);

/// U(+-1/sqrt(fan_in)) for a head of the recipe's auxiliary losses.
void draw_uniform(torch::Tensor& values, std::int64_t fan_in, const RngKey& key);

/// True for the matrices of attention and MLP.
bool decays_weight(const std::string& parameter_name, const torch::Tensor& parameter);

}  // namespace fathom::train
