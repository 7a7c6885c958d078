#pragma once
// Proof that the declared position scheme is the one running.

#include "harness/model/decoder_lm.h"

namespace fathom::engine {

/// Compares every rope layer's rotation with resolve_frequencies() in double at positions 0, 1, L0-1, L0 and 2*L0, for
/// queries and keys. Equal layers are looked at once. \throws ModelError  naming layer, position, channel and both
/// values.
void check_rotation(model::DecoderLm& model);

}  // namespace fathom::engine
