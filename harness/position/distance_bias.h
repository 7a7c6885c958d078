#pragma once
// Biases that depend on the distance of query and key: made once per distance, then read per pair.

#include <torch/types.h>

#include <cstdint>
#include <functional>

#include "harness/kernels/block_attention.h"
#include "harness/position/position_scheme.h"

namespace fathom::position {

/// Distances of the pairs of a block that can be visible: first .. first + count - 1, count >= 1. Negative distances
/// are keys of the future and left out.
struct DistanceRange {
  std::int64_t first = 0;
  std::int64_t count = 1;
};

DistanceRange distance_range(const LogitBlock& block);
/// The range as a tensor [count] of the given type.
torch::Tensor distances(const DistanceRange& range, const torch::TensorOptions& options);

/// bias[b, h, i, j] = values[b, h, i, q_positions[b, i] - k_positions[b, j] - first], 0 outside the values.
/// Differentiable in the values.
///
/// \param values  [batch or 1, heads, q_len or 1, count]; a dimension of 1 serves all rows or all queries.
/// \return        [batch or 1, heads, q_len, k_len], dtype of the values; batch is 1 only if positions and values are.
torch::Tensor bias_by_distance(const torch::Tensor& values, const LogitBlock& block, std::int64_t first);

/// The inference form: `values(head, range, out)` fills the bias of consecutive distances, once per block and head.
using DistanceValues = std::function<void(std::int64_t head, const DistanceRange& range, float* out)>;
kernels::BiasFunction bias_function_by_distance(DistanceValues values);

}  // namespace fathom::position
