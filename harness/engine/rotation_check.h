#pragma once
// Proof that the declared position scheme is the one running.

#include "harness/model/decoder_lm.h"

namespace fathom::engine {

/// Asks every layer's scheme at positions 0, 1, L0-1, L0 and 2*L0, in double where the reference is a formula. Equal
/// layers are looked at once.
///
/// - rope: the rotation of queries and keys equals resolve_frequencies(); under a remap, the angle between query and
///   key is the relative position of rope::relative_position() times the frequency, for every pair of the positions.
/// - other rotations: the score of a pair depends on its distance alone.
/// - biases: what inference asks for (bias_function) equals what training differentiates (block_bias).
///
/// \throws ModelError  naming layer, position, channel or head, and both values.
void check_rotation(model::DecoderLm& model);

}  // namespace fathom::engine
