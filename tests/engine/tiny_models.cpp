#include "tests/engine/tiny_models.h"

#include <cmath>

#include "harness/core/error.h"
#include "harness/model/decoder_lm.h"

namespace fathom::test {

RandomCheckpoint::RandomCheckpoint(const checkpoint::DecoderConfig& config) : config_(config) {
  const model::DecoderLm model(config, torch::kFloat32);
  for (const auto& item : model.named_parameters()) tensors_.push_back({item.key(), item.value().sizes().vec(), "F32"});
}

void RandomCheckpoint::read_float32(std::string_view name, std::int64_t row_begin, std::int64_t row_end,
                                    float* out) const {
  for (const checkpoint::TensorInfo& tensor : tensors_) {
    if (tensor.name != name) continue;
    const std::int64_t width = tensor.shape.size() == 1 ? 1 : tensor.shape[1];
    const bool is_norm = tensor.shape.size() == 1;
    std::uint64_t seed = 0;
    for (const char c : tensor.name) seed = seed * 131 + static_cast<std::uint64_t>(c);
    for (std::int64_t i = row_begin * width; i < row_end * width; ++i) {
      std::uint64_t x = (seed + static_cast<std::uint64_t>(i)) * 0x9e3779b97f4a7c15ULL;
      x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ULL;
      x ^= x >> 32;
      const double uniform = static_cast<double>(x >> 11) * 0x1.0p-53 * 2 - 1;
      // Large enough for logits that differ by several units, so that greedy choices are clear.
      *out++ = static_cast<float>(is_norm ? 1 + 0.2 * uniform
                                          : uniform * 3 / std::sqrt(static_cast<double>(config_.d_model)));
    }
    return;
  }
  throw ModelError("no tensor");
}

}  // namespace fathom::test
