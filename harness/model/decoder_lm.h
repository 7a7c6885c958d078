#pragma once
// The decoder: embedding, blocks, head. One graph for training and inference; harness/model/ops.h picks the
// implementation.

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/checkpoint/decoder_config.h"
#include "harness/model/ops.h"
#include "harness/position/position_scheme.h"

namespace fathom::model {

struct ForwardInput {
  torch::Tensor ids;        ///< [batch, seq] int64
  torch::Tensor positions;  ///< [batch, seq] int64
  /// Inference: packed sequences, batch is 1. Empty in training.
  std::vector<SequenceSpan> sequences;
};

class DecoderLm : public torch::nn::Module {
 public:
  /// Parameters are allocated under the canonical names of harness/checkpoint/checkpoint.h, uninitialised. \param dtype
  /// of matrices and embeddings; norms and biases stay float32.
  DecoderLm(const checkpoint::DecoderConfig& config, torch::Dtype dtype);

  /// Hidden states after the final norm, [batch, seq, d_model]. `after_block`, if set, is called with the index and
  /// output of every block (auxiliary heads of recipe B, debugging).
  torch::Tensor hidden(const ForwardInput& input,
                       const std::function<void(std::int64_t, const torch::Tensor&)>& after_block = nullptr);
  /// Logits of chosen hidden states. rows: [n, d_model]; result [n, vocab] float32. Never called for all positions of a
  /// long sequence.
  torch::Tensor logits(const torch::Tensor& rows);

  const checkpoint::DecoderConfig& config() const { return config_; }
  position::PositionScheme& scheme(std::int64_t layer) { return *schemes_[static_cast<std::size_t>(layer)]; }
  /// Replaces the position settings (scaling at test time); weights stay. The config must describe the same tensors.
  void set_position(const checkpoint::DecoderConfig& config);

 private:
  struct Block;
  checkpoint::DecoderConfig config_;
  std::vector<std::shared_ptr<Block>> blocks_;
  std::vector<std::shared_ptr<position::PositionScheme>> schemes_;
  torch::Tensor token_embedding_, head_, final_norm_weight_, final_norm_bias_;
};

}  // namespace fathom::model
