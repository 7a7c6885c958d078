#pragma once
// One entry of a rotation's table: the arithmetic that the tables of the decoder and the precision figures share.

#include "harness/rope/precision.h"

namespace fathom::rope {

constexpr double kTwoPi = 6.283185307179586476925286766559;

struct CosSin {
  float cos;
  float sin;
};

/// A cos(m theta) and A sin(m theta) as float32, then rounded to the table's format (nearest, ties to even). The
/// product and its reduction modulo 2 pi are double: a float32 product would be wrong by 0.03 rad at position 10^6.
///
/// Not inline: where a caller widens both values again, GCC 12 at -O2 turns their way through float32 into no
/// operation, and a comparison with double measures nothing.
///
/// \param position  m, tokens; fractions are allowed (remaps).
/// \param inv_freq  theta, radians per token.
/// \param table_dtype  what the values are cut down to after A was multiplied in, as engines do that keep their table
/// in the model's dtype; the rotation itself stays float32.
CosSin table_entry(double position, double inv_freq, double attention_factor,
                   FloatFormat table_dtype = FloatFormat::kFloat32);

}  // namespace fathom::rope
