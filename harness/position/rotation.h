#pragma once
// Rotation of pairs of channels by position, differentiable.

#include <torch/types.h>

#include <cstdint>

#include "harness/checkpoint/decoder_config.h"
#include "harness/position/angle_tables.h"

namespace fathom::position {

struct RotationShape {
  checkpoint::RopeLayout layout = checkpoint::RopeLayout::kSplitHalf;
  std::int64_t begin = 0;       ///< first rotated channel of a head
  std::int64_t rotary_dim = 0;  ///< rotated channels; the others are copied unchanged
};

/// x_a' = x_a cos - x_b sin, x_b' = x_b cos + x_a sin for the layout's pairs (a, b).
///
/// \param x          [batch, seq, heads, d_head]
/// \param positions  [batch or 1, seq] int64, rows of the table.
/// \return           same shape, dtype and device as x; computed in float32 (double for double).
torch::Tensor apply_rotation(const torch::Tensor& x, const torch::Tensor& positions, const AngleTable& table,
                             const RotationShape& shape);

}  // namespace fathom::position
