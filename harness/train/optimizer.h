#pragma once
// AdamW (Loshchilov and Hutter 2019) over one flat buffer, so that a step is one pass over memory. Torch-free.

#include <cstdint>
#include <vector>

namespace fathom::train {

struct AdamWSettings {
  double beta1 = 0.9;
  double beta2 = 0.98;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  double clip_norm = 1.0;
};

class FlatAdamW {
 public:
  /// \param decays  per value of the buffer: 1 where weight decay applies, 0 elsewhere.
  FlatAdamW(const AdamWSettings& settings, std::vector<std::uint8_t> decays);

  /// One update of `values` in place. `gradients` are scaled so that their norm is at most clip_norm. \param step  from
  /// 0.
  void step(std::int64_t step, double learning_rate, const float* gradients, float* values);

  std::vector<float>& first_moment() { return first_; }
  std::vector<float>& second_moment() { return second_; }

 private:
  AdamWSettings settings_;
  std::vector<std::uint8_t> decays_;
  std::vector<float> first_, second_;
};

}  // namespace fathom::train
