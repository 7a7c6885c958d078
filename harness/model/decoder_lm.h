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
#include "harness/model/decoder_block.h"
#include "harness/model/ops.h"
#include "harness/position/position_scheme.h"

namespace fathom::model {

struct ForwardInput {
  torch::Tensor ids;        ///< [batch, seq] int64
  torch::Tensor positions;  ///< [batch, seq] int64
  /// Inference: packed sequences, batch is 1. Empty in training.
  std::vector<SequenceSpan> sequences;
  torch::Tensor encoded;  ///< [1, n, d_model], what encode() made of the encoder's input; only in encoder-decoders
};

class DecoderLm : public torch::nn::Module {
 public:
  /// Parameters are allocated under the canonical names of harness/checkpoint/decoder_tensors.h, uninitialised. \param
  /// dtype of matrices and embeddings; norms and biases stay float32.
  DecoderLm(const checkpoint::DecoderConfig& config, torch::Dtype dtype);

  /// Hidden states after the final norm, [batch, seq, d_model]. `after_block`, if set, is called with the index and
  /// output of every block (auxiliary heads of recipe B, debugging).
  torch::Tensor hidden(const ForwardInput& input,
                       const std::function<void(std::int64_t, const torch::Tensor&)>& after_block = nullptr);
  /// The encoder's result for one sequence of ids [1, n]. \throws ModelError  for a model without an encoder.
  torch::Tensor encode(const torch::Tensor& ids);
  /// Logits of chosen hidden states. rows: [n, d_model]; result [n, vocab] float32. Never called for all positions of a
  /// long sequence.
  torch::Tensor logits(const torch::Tensor& rows);

  const checkpoint::DecoderConfig& config() const { return config_; }
  position::PositionScheme& scheme(std::int64_t layer) { return *schemes_[static_cast<std::size_t>(layer)]; }
  /// Replaces the position settings (scaling at test time); weights stay. The config must describe the same tensors.
  void set_position(const checkpoint::DecoderConfig& config);

 private:
  torch::Tensor normed(const torch::Tensor& x, const NormParameters& norm) const;
  torch::Tensor run_block(std::size_t index, const torch::Tensor& x, const ForwardInput& input);
  torch::Tensor run_scaled_block(std::size_t index, ops::AttentionCall& call);
  torch::Tensor run_block_with_norms_behind(std::size_t index, ops::AttentionCall& call);

  checkpoint::DecoderConfig config_;
  std::vector<BlockParameters> blocks_;
  std::vector<std::shared_ptr<position::PositionScheme>> schemes_;
  torch::Tensor token_embedding_;
  torch::Tensor embedding_in_, embedding_out_;  ///< between the widths of embedding and model; undefined where equal
  std::vector<BlockParameters> encoder_blocks_;
  NormParameters encoder_norm_;
  torch::Tensor encoder_table_;
  NormParameters embedding_norm_, final_norm_;
  LinearParameters head_;
};

}  // namespace fathom::model
