#pragma once
// Cosine and sine tables of a rotation, shared by all layers of a decoder and keyed by everything that shapes them.

#include <torch/types.h>

#include <cstdint>
#include <map>

#include "harness/rope/rope_scaling.h"

namespace fathom::position {

/// Rows are positions, columns the rotated pairs; both [n_positions, rotary_dim / 2] float32 on the CPU, attention
/// factor included.
struct AngleTable {
  torch::Tensor cos;
  torch::Tensor sin;
};

/// Hash of the frequency list and the attention factor: equal rotations have equal identities.
std::uint64_t rotation_identity(const rope::RopeFrequencies& frequencies);

class AngleTables {
 public:
  /// A table of at least `n_positions` rows. Angles are products in double, reduced modulo 2 pi before the cosine is
  /// taken: a float32 product would be wrong by 0.03 rad at position 10^6.
  const AngleTable& table(const rope::RopeFrequencies& frequencies, std::int64_t n_positions);

 private:
  std::map<std::uint64_t, AngleTable> tables_;
};

}  // namespace fathom::position
