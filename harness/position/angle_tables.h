#pragma once
// Cosine and sine tables of a rotation, shared by all layers of a decoder and keyed by everything that shapes them.

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "harness/rope/rope_scaling.h"

namespace fathom::position {

/// Rows are positions, columns the rotated pairs; both [n_positions, rotary_dim / 2] float32 on the CPU, attention
/// factor included, holding numbers of the frequencies' table_dtype only.
struct AngleTable {
  torch::Tensor cos;
  torch::Tensor sin;
};

/// Where a token stands for the rotation: at its position, or where a remap puts it (which may be a fraction).
struct PositionMap {
  std::string identity;                          ///< equal maps have equal names; empty = the position itself
  std::function<double(std::int64_t)> mapped{};  ///< empty = the position itself
};

/// A table and, for each position that was asked for, its row in it.
struct AngleRows {
  AngleTable table;
  torch::Tensor rows;  ///< int64, shaped as the positions
};

/// Hash of the frequency list, the attention factor and the table's format: equal rotations have equal identities.
std::uint64_t rotation_identity(const rope::RopeFrequencies& frequencies);

class AngleTables {
 public:
  /// A table of at least `n_positions` rows. Angles are products in double, reduced modulo 2 pi before the cosine is
  /// taken: a float32 product would be wrong by 0.03 rad at position 10^6.
  const AngleTable& table(const rope::RopeFrequencies& frequencies, std::int64_t n_positions,
                          const PositionMap& map = {});

  /// The same angles for some positions. Few positions far out (one step of decoding under a table of its own, the
  /// check at model load) get rows of their own instead of a table up to the last of them.
  ///
  /// \param positions  int64, any shape, on the CPU. \param total_len  rows worth having if a table is made.
  AngleRows rows(const rope::RopeFrequencies& frequencies, const torch::Tensor& positions, std::int64_t total_len,
                 const PositionMap& map = {});

 private:
  using Key = std::pair<std::uint64_t, std::string>;
  std::map<Key, AngleTable> tables_;
};

}  // namespace fathom::position
